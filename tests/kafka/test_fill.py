"""Gaps of a bronze table, filled from a real broker."""

from __future__ import annotations

from typing import Any

import pytest
from drained import Drained  # type: ignore[import-not-found]

from cdc_lakehouse.errors import ForeignCommitError, KafkaMovedError, TopicRecreatedError

FILL = {"fill_gaps": ("orders",)}


def deleted(drained: Drained, *offsets: int) -> None:
    """By hand from bronze, and acknowledged."""
    listed = ", ".join(map(str, offsets))
    drained.chain.sql(f"DELETE FROM {{t}} WHERE offset IN ({listed})", drained.chain.lake.bronze("orders"))
    with pytest.raises(ForeignCommitError) as caught:
        drained.plan()
    drained.run(acknowledge_foreign=(str(caught.value).split("`")[1],))


def gaps(drained: Drained) -> list[Any]:
    return list(drained.plan(**FILL).ledger.gaps().values())


def test_a_gap_with_aborted_records_and_markers_is_filled_with_those_that_are_visible(drained):
    broker, topic = drained.broker, drained.topic
    broker.create(topic)
    drained.send_in_transactions()
    drained.send(5, 6)
    drained.run()
    visible = drained.offsets()
    deleted(drained, 1, 4, 7)
    assert gaps(drained) == [{0: ((1, 5), (7, 8))}]

    result = drained.run(**FILL)

    assert drained.offsets() == visible == [(0, 0), (0, 1), (0, 4), (0, 6), (0, 7)]
    assert (result.counts["appended"], result.gaps, gaps(drained)) == (3, {}, [])
    assert drained.plan(**FILL).is_idle


def test_what_retention_took_of_a_gap_stays_one(drained):
    broker, topic = drained.broker, drained.topic
    broker.create(topic)
    drained.send(*range(6))
    drained.run()
    deleted(drained, 1, 2, 3, 4)
    broker.age_out(topic, 3)

    result = drained.run(**FILL)

    assert drained.offsets() == [(0, 0), (0, 3), (0, 4), (0, 5)]
    assert result.gaps == {topic: {"0": [[1, 3]]}}
    assert drained.plan(**FILL).is_idle


def test_what_ages_out_behind_the_plan_commits_nothing_and_the_next_try_fills_the_rest(drained):
    broker, topic = drained.broker, drained.topic
    broker.create(topic)
    drained.send(*range(6))
    drained.run()
    deleted(drained, 1, 2, 3, 4)
    plan = drained.plan(**FILL)
    broker.age_out(topic, 3)

    with pytest.raises(KafkaMovedError):
        drained.run(plan)
    assert drained.offsets() == [(0, 0), (0, 5)]

    drained.run(**FILL)
    assert drained.offsets() == [(0, 0), (0, 3), (0, 4), (0, 5)]


def test_a_topic_made_again_is_never_read_for_a_gap_of_the_old_one(drained):
    broker, topic = drained.broker, drained.topic
    broker.create(topic)
    drained.send(1, 2, 3)
    drained.run()
    deleted(drained, 1)
    plan = drained.plan(**FILL)
    broker.create_again(topic)
    drained.send(7, 8, 9)

    with pytest.raises(TopicRecreatedError):
        drained.plan(**FILL)
    with pytest.raises(KafkaMovedError):
        drained.run(plan)

    assert drained.offsets() == [(0, 0), (0, 2)]

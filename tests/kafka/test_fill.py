"""Gaps of a bronze table, filled from a real broker."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from drained import Drained  # type: ignore[import-not-found]

from cdc_lakehouse.bronze.gap_times import gaps_within
from cdc_lakehouse.errors import ForeignCommitError, KafkaMovedError, TopicRecreatedError
from cdc_lakehouse.lake.interval import Interval, RowsOfInterval

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


def test_an_interval_fills_the_gaps_of_its_time_and_reads_nothing_behind_the_end(drained):
    broker, topic = drained.broker, drained.topic
    broker.create(topic)
    hours = [datetime(2026, 11, 3, hour, tzinfo=UTC) for hour in range(5)]
    for hour, moment in enumerate(hours[:4]):
        drained.send(2 * hour, 2 * hour + 1, timestamp=int(moment.timestamp() * 1000))
    drained.run()
    deleted(drained, 1, 2, 5)
    drained.send(8)

    plan, task = drained.plan_interval(Interval(hours[1], hours[3]))
    result = drained.run(plan)

    assert drained.offsets() == [(0, offset) for offset in (0, 2, 3, 4, 5, 6, 7)]
    assert (result.counts["appended"], result.gaps) == (2, {topic: {"0": [[1, 2]]}})
    assert (task.rows, task.unread, task.begins_before_kafka) == (RowsOfInterval(2, any_row=True), 1, False)
    plan, task = drained.plan_interval(Interval(hours[1], hours[3]))
    assert (plan.is_idle, task.is_done) == (True, True)


def test_a_gap_that_kafka_lost_counts_for_the_interval_that_the_rows_beside_it_leave_open(drained):
    broker, topic = drained.broker, drained.topic
    broker.create(topic)
    hours = [datetime(2026, 11, 3, hour, tzinfo=UTC) for hour in range(5)]
    for hour, moment in enumerate(hours[:4]):
        drained.send(hour, timestamp=int(moment.timestamp() * 1000))
    drained.run()
    deleted(drained, 1)
    broker.age_out(topic, 3)
    _, task = drained.plan_interval(Interval(hours[1], hours[2]))

    uri, session = drained.chain.lake.bronze("orders"), drained.chain.session
    within = [
        bool(gaps_within(session, uri, task.gone, Interval(hours[start], hours[start + 1])))
        for start in (0, 1, 2, 3)
    ]

    looks = [drained.plan_interval(Interval(hours[start], hours[start + 1])) for start in (0, 1, 2, 3)]

    # Between the record of hour 0 and that of hour 2.
    assert (within, task.begins_before_kafka) == ([True, True, True, False], True)
    assert [look.can_do_nothing for _, look in looks] == within
    assert [plan.is_idle and look.is_done for plan, look in looks] == [not each for each in within]


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

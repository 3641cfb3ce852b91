"""Which gaps Kafka can still give out, in which batches, and what the ledger says then: values only."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from orders_in_kafka import SOURCE, TOPIC, facts, ledger_of, topic  # type: ignore[import-not-found]

from cdc_lakehouse.bronze.decided import Decided
from cdc_lakehouse.bronze.fill_plan import FillPlan, batches, filled, plan_fill
from cdc_lakehouse.bronze.interval import offsets_of, plan_interval
from cdc_lakehouse.bronze.plan import plan_drain
from cdc_lakehouse.errors import LogCutError, OffsetsLostError, TopicRecreatedError
from cdc_lakehouse.kafka.cluster import Cluster
from cdc_lakehouse.lake.interval import Interval
from cdc_lakehouse.lake.progress import Progress
from cdc_lakehouse.lake.spans import Spans, each_span, offsets_in

GAPS = ((2, 4), (6, 9))
HOLED = ledger_of({SOURCE: {0: Progress(floor=0, end=10, gaps=GAPS, epochs=((7, 1),))}})
FILL = Decided(fill_gaps=True)


def plan(*held: tuple[int, int], decided: Decided = FILL, **kafka: str):
    return plan_drain(HOLED, (TOPIC,), facts=facts(*held, **kafka), decided=decided)


def test_nobody_asked_and_nothing_is_filled():
    planned = plan((0, 10), decided=Decided())

    assert planned.is_idle
    assert planned.fill.decision({}, left={}) == {}


def test_a_gap_that_kafka_holds_is_filled_whole():
    planned = plan((0, 10))

    assert planned.fill == FillPlan(asked=True, held={SOURCE: {0: GAPS}})
    assert (planned.is_idle, planned.amends, planned.fill.offsets) == (False, False, 5)


def test_what_retention_took_of_a_gap_stays_one():
    assert plan((7, 10)).fill == FillPlan(
        asked=True, held={SOURCE: {0: ((7, 9),)}}, gone={SOURCE: {0: ((2, 4), (6, 7))}}
    )


def test_gaps_that_kafka_no_longer_holds_are_no_work():
    planned = plan((10, 10))

    assert planned.is_idle
    assert planned.fill.gone == {SOURCE: {0: GAPS}}
    assert planned.fill.decision({}, left=planned.fill.gone) == {
        "fill_gaps": {"filled": {}, "left": {SOURCE: {"0": [[2, 4], [6, 9]]}}}
    }


def test_a_gap_of_an_older_incarnation_is_never_filled_from_a_newer_one():
    both = ledger_of({SOURCE: HOLED.sources[SOURCE], f"{TOPIC}@id2": {0: Progress(floor=0, end=10)}})

    found = plan_fill(both, [topic((0, 10), topic_id="id2")], {TOPIC: f"{TOPIC}@id2"})

    assert (found.held, found.gone) == ({}, {SOURCE: {0: GAPS}})


def test_a_topic_that_was_made_again_refuses_a_fill():
    with pytest.raises(TopicRecreatedError):
        plan((0, 10), topic_id="id2")


def test_a_log_that_ends_below_the_ledger_refuses_a_fill():
    with pytest.raises(LogCutError):
        plan((0, 9))


def test_a_loss_is_decided_on_before_anything_is_filled():
    with pytest.raises(OffsetsLostError):
        plan((12, 20))


def test_what_is_accepted_as_lost_with_the_same_run_stays_a_gap():
    planned = plan((12, 20), decided=Decided(fill_gaps=True, accept_gap=frozenset({f"{TOPIC}/0:10-12"})))

    assert (planned.fill.held, planned.fill.gone) == ({}, {SOURCE: {0: ((2, 4), (6, 9), (10, 12))}})


def test_a_fill_moves_no_end_and_no_epoch():
    after = filled(HOLED, {SOURCE: {0: ((2, 4), (7, 9))}}, attempt="a", seen_through="2026-01-02")

    assert after.sources == {SOURCE: {0: Progress(floor=0, end=10, gaps=((6, 7),), epochs=((7, 1),))}}
    assert (after.seq, after.attempt, after.added) == (HOLED.seq + 1, "a", {})
    assert after.decisions == {"fill_gaps": {SOURCE: {"0": [[2, 4], [7, 9]]}}}
    assert after.seen_through == "2026-01-02"


def test_a_second_fill_of_the_same_gap_is_no_step():
    once = filled(HOLED, {SOURCE: {0: GAPS}}, attempt="a", seen_through=None)

    with pytest.raises(ValueError, match="not part of a gap"):
        filled(once, {SOURCE: {0: GAPS}}, attempt="b", seen_through=None)


def test_batches_are_cut_at_the_limit_and_go_across_partitions():
    spans: Spans = {"a@1": {0: ((0, 7),), 1: ((1, 2), (5, 6))}}

    assert list(batches(spans, limit=3)) == [
        {"a@1": {0: ((0, 3),)}},
        {"a@1": {0: ((3, 6),)}},
        {"a@1": {0: ((6, 7),), 1: ((1, 2), (5, 6))}},
    ]


def _apart(lengths: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    found, at = [], 0
    for gap, length in lengths:
        found.append((at + gap, at + gap + length))
        at += gap + length
    return tuple(found)


PARTS = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 9)), min_size=1, max_size=4).map(_apart)


@given(
    spans=st.dictionaries(
        st.sampled_from(["a@1", "b@2"]), st.dictionaries(st.integers(0, 2), PARTS, min_size=1), max_size=2
    ),
    limit=st.integers(1, 12),
)
def test_batches_are_all_of_it_once_and_only_the_last_is_smaller(spans, limit):
    def offsets(of: Spans) -> list[tuple[str, int, int]]:
        return [(source, p, offset) for source, p, span in each_span(of) for offset in range(*span)]

    found = list(batches(spans, limit=limit))

    assert [place for batch in found for place in offsets(batch)] == offsets(spans)
    assert all(offsets_in(batch) == limit for batch in found[:-1])
    assert all(0 < offsets_in(batch) <= limit for batch in found[-1:])


def test_an_interval_fills_gaps_from_its_beginning_on_since_events_of_it_may_have_come_late():
    interval = Interval(datetime(2026, 11, 3, 1, tzinfo=UTC), datetime(2026, 11, 3, 2, tzinfo=UTC))
    drain = plan((0, 12))

    class Kafka:
        def offsets_at(self, topic, moment):
            return {0: 3 if moment == interval.start else 5}

    planned = plan_interval(drain, interval, offsets=offsets_of(interval, drain, cast(Cluster, Kafka())))

    assert (planned.fill.held, planned.until) == ({SOURCE: {0: ((3, 4), (6, 9))}}, planned.start)


def test_a_person_who_asks_for_all_gaps_beside_an_interval_gets_them():
    interval = Interval(datetime(2026, 11, 3, 1, tzinfo=UTC), datetime(2026, 11, 3, 2, tzinfo=UTC))

    planned = plan_interval(plan((0, 12)), interval, offsets={SOURCE: {0: (8, 9)}}, fills_all=True)

    assert (planned.fill.held, planned.until) == ({SOURCE: {0: GAPS}}, planned.start)

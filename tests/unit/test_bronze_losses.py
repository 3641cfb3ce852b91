"""What Kafka no longer holds is named, and passed over only when a person says so (`guarantees` §2.7)."""

from __future__ import annotations

import pytest
from orders_in_kafka import SOURCE, TOPIC, facts, ledger, ledger_of, topic  # type: ignore[import-not-found]

from cdc_lakehouse.bronze.decided import Decided
from cdc_lakehouse.bronze.plan import plan_drain
from cdc_lakehouse.errors import OffsetsLostError
from cdc_lakehouse.kafka.facts import ClusterFacts
from cdc_lakehouse.lake.progress import Progress

ACCEPT = Decided(accept_gap=True)
DAYS = (f"{TOPIC}.monday", f"{TOPIC}.tuesday")


def test_aged_out_records_stop_the_table_and_all_of_them_are_named():
    with pytest.raises(OffsetsLostError) as caught:
        plan_drain(ledger(p0=5, p1=7, p2=9), (TOPIC,), facts=facts((6, 9), (20, 30), (0, 9)))

    assert caught.value.table == "orders"
    assert caught.value.ranges == f"{TOPIC}/0 [5, 6), {TOPIC}/1 [7, 20)"


def test_a_topic_that_was_emptied_behind_the_ledger_is_no_loss_and_before_it_is_one():
    assert plan_drain(ledger(p0=5), (TOPIC,), facts=facts((5, 5))).is_idle

    with pytest.raises(OffsetsLostError) as caught:
        plan_drain(ledger(p0=5), (TOPIC,), facts=facts((8, 8)))

    assert caught.value.ranges == f"{TOPIC}/0 [5, 8)"


def test_a_partition_that_appeared_owes_its_records_from_the_first_on():
    with pytest.raises(OffsetsLostError) as caught:
        plan_drain(ledger(p0=5), (TOPIC,), facts=facts((0, 5), (3, 4)))

    assert caught.value.ranges == f"{TOPIC}/1 [0, 3)"


def test_an_accepted_gap_moves_the_end_and_stays_in_the_ledger():
    plan = plan_drain(ledger(p0=5, p1=7), (TOPIC,), facts=facts((6, 9), (0, 7), (3, 4)), decided=ACCEPT)

    assert plan.ledger.sources[SOURCE] == {
        0: Progress(floor=0, end=6, gaps=((5, 6),)),
        1: Progress(floor=0, end=7),
        2: Progress(floor=0, end=3, gaps=((0, 3),)),
    }
    assert (plan.amends, plan.ledger.seq, plan.ledger.added) == (True, 4, {})
    assert plan.ledger.decisions == {"accept_gap": {SOURCE: {"0": [5, 6], "2": [0, 3]}}}
    assert plan.start == {TOPIC: {0: 6, 1: 7, 2: 3}}


def test_an_accepted_gap_is_work_even_where_nothing_else_is_new():
    assert not plan_drain(ledger(p0=5), (TOPIC,), facts=facts((8, 8)), decided=ACCEPT).is_idle


def test_accepting_where_nothing_is_lost_changes_nothing():
    plan = plan_drain(ledger(p0=5), (TOPIC,), facts=facts((0, 5)), decided=ACCEPT)

    assert (plan.is_idle, plan.ledger) == (True, ledger(p0=5))


def test_a_second_try_with_the_same_parameter_finds_it_done():
    first = plan_drain(ledger(p0=5), (TOPIC,), facts=facts((8, 9)), decided=ACCEPT)
    again = plan_drain(first.ledger, (TOPIC,), facts=facts((8, 9)), decided=ACCEPT)

    assert (again.amends, again.ledger, again.start) == (False, first.ledger, {TOPIC: {0: 8}})


def several(monday: Progress) -> tuple[dict[str, dict[int, Progress]], ClusterFacts]:
    """Of two topics that rotate, the older one is gone."""
    sources = {f"{DAYS[0]}@id1": {0: monday}, f"{DAYS[1]}@id2": {0: Progress(floor=0, end=3)}}
    return sources, ClusterFacts("c1", {DAYS[1]: topic((0, 4), name=DAYS[1], topic_id="id2")})


def test_a_topic_of_a_pattern_that_vanished_after_it_was_read_whole_is_not_missed():
    sources, kafka = several(Progress(floor=0, end=9))
    plan = plan_drain(ledger_of(sources), (DAYS[1],), facts=kafka, by_pattern=True)

    assert (plan.start, plan.amends) == ({DAYS[1]: {0: 3}}, False)


def test_a_topic_of_a_pattern_that_vanished_before_it_was_read_whole_is_a_loss():
    sources, kafka = several(Progress(floor=0, end=9, seen=12))

    with pytest.raises(OffsetsLostError) as caught:
        plan_drain(ledger_of(sources), (DAYS[1],), facts=kafka, by_pattern=True)

    assert caught.value.ranges == f"{DAYS[0]}/0 [9, 12)"


def test_what_a_vanished_topic_still_held_may_be_accepted_as_a_gap():
    sources, kafka = several(Progress(floor=0, end=9, seen=12))
    known = ledger_of(sources)
    plan = plan_drain(known, (DAYS[1],), facts=kafka, by_pattern=True, decided=ACCEPT)
    again = plan_drain(plan.ledger, (DAYS[1],), facts=kafka, by_pattern=True)

    assert plan.ledger.sources[f"{DAYS[0]}@id1"][0] == Progress(floor=0, end=12, gaps=((9, 12),))
    assert again.amends is False


def test_topics_that_rotate_are_told_apart_and_read_side_by_side():
    sources, _ = several(Progress(floor=0, end=9))
    both = {
        DAYS[0]: topic((0, 9), name=DAYS[0]),
        DAYS[1]: topic((0, 4), name=DAYS[1], topic_id="id2"),
        f"{TOPIC}.wednesday": topic((0, 2), name=f"{TOPIC}.wednesday", topic_id="id3"),
    }
    plan = plan_drain(ledger_of(sources), tuple(both), facts=ClusterFacts("c1", both), by_pattern=True)

    assert plan.start == {DAYS[0]: {0: 9}, DAYS[1]: {0: 3}, f"{TOPIC}.wednesday": {0: 0}}
    assert plan.planned[f"{TOPIC}.wednesday@id3"] == {0: (0, 2)}

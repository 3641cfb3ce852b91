"""What Kafka no longer holds is named, and passed over only when a person says so (`guarantees` §2.7)."""

from __future__ import annotations

import pytest
from orders_in_kafka import SOURCE, TOPIC, facts, ledger, ledger_of, topic  # type: ignore[import-not-found]

from cdc_lakehouse.bronze.decided import Decided
from cdc_lakehouse.bronze.plan import plan_drain
from cdc_lakehouse.contract import Job, JobRequest
from cdc_lakehouse.errors import DecisionOutdatedError, OffsetsLostError
from cdc_lakehouse.kafka.facts import ClusterFacts
from cdc_lakehouse.lake.progress import Progress

DAYS = (f"{TOPIC}.monday", f"{TOPIC}.tuesday")


def test_aged_out_records_stop_the_table_and_all_of_them_are_named():
    with pytest.raises(OffsetsLostError) as caught:
        plan_drain(ledger(p0=5, p1=7, p2=9), (TOPIC,), facts=facts((6, 9), (20, 30), (0, 9)))

    assert caught.value.table == "orders"
    assert caught.value.decision == f"orders={TOPIC}/0:5-6,{TOPIC}/1:7-20"
    assert f"accept_gap: `{caught.value.decision}`" in str(caught.value)


def test_a_topic_that_was_emptied_behind_the_ledger_is_no_loss_and_before_it_is_one():
    assert plan_drain(ledger(p0=5), (TOPIC,), facts=facts((5, 5))).is_idle

    with pytest.raises(OffsetsLostError) as caught:
        plan_drain(ledger(p0=5), (TOPIC,), facts=facts((8, 8)))

    assert caught.value.decision == f"orders={TOPIC}/0:5-8"


def test_a_partition_that_appeared_owes_its_records_from_the_first_on():
    with pytest.raises(OffsetsLostError) as caught:
        plan_drain(ledger(p0=5), (TOPIC,), facts=facts((0, 5), (3, 4)))

    assert caught.value.decision == f"orders={TOPIC}/1:0-3"


def test_an_accepted_gap_moves_the_end_and_stays_in_the_ledger():
    plan = plan_drain(
        ledger(p0=5, p1=7),
        (TOPIC,),
        facts=facts((6, 9), (0, 7), (3, 4)),
        decided=accept(f"{TOPIC}/0:5-6, {TOPIC}/2:0-3"),
    )

    assert plan.ledger.sources[SOURCE] == {
        0: Progress(floor=0, end=6, gaps=((5, 6),)),
        1: Progress(floor=0, end=7),
        2: Progress(floor=0, end=3, gaps=((0, 3),)),
    }
    assert (plan.amends, plan.ledger.seq, plan.ledger.added) == (True, 4, {})
    assert plan.ledger.decisions == {"accept_gap": {SOURCE: {"0": [5, 6], "2": [0, 3]}}}
    assert plan.start == {TOPIC: {0: 6, 1: 7, 2: 3}}


def test_an_accepted_gap_is_work_even_where_nothing_else_is_new():
    assert not plan_drain(
        ledger(p0=5), (TOPIC,), facts=facts((8, 8)), decided=accept(f"{TOPIC}/0:5-8")
    ).is_idle


@pytest.mark.parametrize("named", ["", f"{TOPIC}/0:0-3", f"{TOPIC}/1:0-3", "yes", f"{TOPIC}/0:6-9"])
def test_a_decision_about_anything_else_changes_nothing_and_prints_what_it_would_be(named):
    with pytest.raises(DecisionOutdatedError) as caught:
        plan_drain(ledger(p0=5), (TOPIC,), facts=facts((9, 9)), decided=accept(named))

    assert caught.value.standing == f"`orders={TOPIC}/0:5-9`"
    assert caught.value.named == (f"`orders={named}`" if named else "nothing")


@pytest.mark.parametrize("named", ["", f"{TOPIC}/0:5-9"])
def test_a_decision_about_what_is_not_lost_is_refused(named):
    with pytest.raises(DecisionOutdatedError) as caught:
        plan_drain(ledger(p0=5), (TOPIC,), facts=facts((0, 9)), decided=accept(named))

    assert caught.value.standing == "nothing"


def test_a_run_of_monday_that_is_cleared_on_friday_gives_up_nothing_that_friday_lost():
    monday = accept(f"{TOPIC}/0:5-8")
    after = plan_drain(ledger(p0=5), (TOPIC,), facts=facts((8, 9)), decided=monday).ledger

    with pytest.raises(DecisionOutdatedError) as caught:
        plan_drain(after, (TOPIC,), facts=facts((20, 30)), decided=monday)

    assert caught.value.standing == f"`orders={TOPIC}/0:8-20`"


def test_a_decision_of_an_older_incarnation_is_carried_out_already():
    sources = {f"{TOPIC}@id0": {0: Progress(floor=0, end=8, gaps=((5, 8),))}, SOURCE: {0: Progress.begun(0)}}
    plan = plan_drain(ledger_of(sources), (TOPIC,), facts=facts((0, 0)), decided=accept(f"{TOPIC}/0:5-8"))

    assert plan.is_idle


def test_a_second_try_with_the_same_parameter_finds_it_done():
    first = plan_drain(ledger(p0=5), (TOPIC,), facts=facts((8, 9)), decided=accept(f"{TOPIC}/0:5-8"))
    again = plan_drain(first.ledger, (TOPIC,), facts=facts((8, 9)), decided=accept(f"{TOPIC}/0:5-8"))

    assert (again.amends, again.ledger, again.start) == (False, first.ledger, {TOPIC: {0: 8}})


def accept(named: str) -> Decided:
    """As a run asks for it."""
    request = JobRequest(
        job=Job.BRONZE_INGEST, pipeline="shop", tables=(), accept_gap=(f"orders={named}", "other=x")
    )
    return Decided.about("orders", request)


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

    assert caught.value.decision == f"orders={DAYS[0]}/0:9-12"


def test_what_a_vanished_topic_still_held_may_be_accepted_as_a_gap():
    sources, kafka = several(Progress(floor=0, end=9, seen=12))
    known = ledger_of(sources)
    given_up = accept(f"{DAYS[0]}/0:9-12")
    plan = plan_drain(known, (DAYS[1],), facts=kafka, by_pattern=True, decided=given_up)
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

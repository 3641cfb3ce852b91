"""A table that is gone at its source ends by one decision, and nothing that is there goes unread by it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from orders_in_kafka import CLUSTER, SOURCE, TOPIC, facts, ledger, ledger_of, topic  # type: ignore[import-not-found]

from cdc_lakehouse.bronze.decided import Decided
from cdc_lakehouse.bronze.ending import end_reading, is_reading_ended, names_of_ending
from cdc_lakehouse.bronze.losses import having_seen
from cdc_lakehouse.bronze.plan import DrainPlan, plan_drain
from cdc_lakehouse.contract import Job, JobRequest
from cdc_lakehouse.errors import (
    DecisionOutdatedError,
    TopicMissingError,
    TopicRecreatedError,
    TopicUnavailableError,
)
from cdc_lakehouse.kafka.facts import ClusterFacts
from cdc_lakehouse.lake.ledger import Ledger, has_ended
from cdc_lakehouse.lake.progress import Progress

GONE = ClusterFacts(CLUSTER, {})
OTHER = "shop.public.orders_eu"


def stop(named: str = "step3") -> Decided:
    """As a run asks for it."""
    request = JobRequest(job=Job.BRONZE_INGEST, pipeline="shop", tables=(), stop_reading=(f"orders={named}",))
    return Decided.about("orders", request)


def ended(known: Ledger, kafka: ClusterFacts = GONE, topics: tuple[str, ...] = (TOPIC,)) -> DrainPlan:
    return plan_drain(known, topics, facts=kafka, decided=stop())


def test_what_the_sentence_prints_ends_the_table_and_the_next_run_is_idle():
    with pytest.raises(TopicMissingError) as caught:
        plan_drain(ledger(p0=5), (TOPIC,), facts=GONE)
    plan = plan_drain(ledger(p0=5), (TOPIC,), facts=GONE, decided=stop(str(caught.value)[-6:-1]))
    again = plan_drain(plan.ledger, (TOPIC,), facts=GONE)

    assert str(caught.value).endswith("; stop_reading: `orders=step3`")
    assert (plan.amends, plan.backlog, plan.ledger.seq) == (True, 0, 4)
    assert plan.ledger.decisions == {"stop_reading": {"ended": [SOURCE], "left": {}}}
    assert plan.ledger.sources == ledger(p0=5).sources
    assert (again.is_idle, again.topics, has_ended(plan.ledger)) == (True, (), True)


def test_a_run_that_ended_the_table_and_is_cleared_finds_it_done():
    plan = ended(ledger(p0=5))

    assert ended(plan.ledger).is_idle


def test_what_kafka_was_seen_to_hold_of_a_topic_that_is_gone_is_a_gap():
    known = ledger_of({SOURCE: {0: Progress(floor=0, end=5, seen=9)}})
    plan = plan_drain(known, (TOPIC,), facts=GONE, decided=stop(f"step3,{TOPIC}/0:5-9"))

    assert plan.ledger.sources[SOURCE][0] == Progress(floor=0, end=9, gaps=((5, 9),))
    assert plan.ledger.decisions["stop_reading"]["left"] == {SOURCE: {"0": [5, 9]}}


@pytest.mark.parametrize("named", ["", "step2", "step4", "yes"])
def test_a_decision_about_another_step_ends_nothing(named):
    with pytest.raises(DecisionOutdatedError) as caught:
        plan_drain(ledger(p0=5), (TOPIC,), facts=GONE, decided=stop(named))

    assert caught.value.standing == "`orders=step3`"


@pytest.mark.parametrize("named", ["step3", f"step3,{TOPIC}/0:5-8", f"{TOPIC}/0:5-9"])
def test_a_decision_that_does_not_name_what_is_given_up_is_refused_with_the_one_that_does(named):
    known = ledger_of({SOURCE: {0: Progress(floor=0, end=5, seen=9)}})
    with pytest.raises(TopicMissingError) as missing:
        plan_drain(known, (TOPIC,), facts=GONE)
    with pytest.raises(DecisionOutdatedError) as outdated:
        plan_drain(known, (TOPIC,), facts=GONE, decided=stop(named))

    assert outdated.value.standing == f"`orders={TOPIC}/0:5-9,step3`"
    assert missing.value.decision == f"; stop_reading: {outdated.value.standing}"


def test_a_run_that_gave_offsets_up_and_is_cleared_finds_it_done():
    known = ledger_of({SOURCE: {0: Progress(floor=0, end=5, seen=9)}})
    decided = stop(f"step3,{TOPIC}/0:5-9")
    plan = plan_drain(known, (TOPIC,), facts=GONE, decided=decided)

    assert plan_drain(plan.ledger, (TOPIC,), facts=GONE, decided=decided).is_idle


def test_what_an_ingest_that_failed_saw_of_a_topic_that_is_gone_is_given_up_by_name():
    """No step of the ledger knows of these records."""
    known = having_seen(ledger(p0=5), {SOURCE: {0: (5, 9), 1: (0, 2)}}, facts=GONE)
    given_up = f"step3,{TOPIC}/0:5-9,{TOPIC}/1:0-2"
    with pytest.raises(DecisionOutdatedError):
        plan_drain(known, (TOPIC,), facts=GONE, decided=stop())
    plan = plan_drain(known, (TOPIC,), facts=GONE, decided=stop(given_up))

    assert plan.ledger.decisions["stop_reading"]["left"] == {SOURCE: {"0": [5, 9], "1": [0, 2]}}


@pytest.mark.parametrize(
    "kafka", [facts((0, 9)), ClusterFacts(CLUSTER, {}, silent={TOPIC: "no leader"})], ids=["there", "silent"]
)
def test_what_was_seen_of_a_topic_that_is_there_is_asked_of_kafka(kafka):
    assert having_seen(ledger(p0=5), {SOURCE: {0: (5, 9)}}, facts=kafka) == ledger(p0=5)


@pytest.mark.parametrize("known", [ledger(), ledger(p0=5)], ids=["never read", "with news"])
def test_a_table_that_has_something_to_read_or_to_begin_is_not_ended(known):
    with pytest.raises(DecisionOutdatedError) as caught:
        ended(known, facts((0, 9)))

    assert caught.value.standing == "nothing"


def test_a_table_whose_topic_outlived_it_is_ended_and_goes_on_when_records_come():
    plan = ended(ledger(p0=5), facts((0, 5)))
    later = plan_drain(plan.ledger, (TOPIC,), facts=facts((0, 7)))
    after = later.ledger.advanced({SOURCE: {0: (5, 7)}}, attempt="a", seen_through=None)

    assert (has_ended(plan.ledger), later.backlog) == (True, 2)
    assert not has_ended(after)
    with pytest.raises(TopicMissingError):
        plan_drain(after, (TOPIC,), facts=GONE)


def test_an_ended_table_whose_topic_is_made_again_asks_as_any_other():
    plan = ended(ledger(p0=5))

    with pytest.raises(TopicRecreatedError):
        plan_drain(plan.ledger, (TOPIC,), facts=facts((0, 2), topic_id="id2"))


def test_a_topic_without_a_leader_is_not_gone():
    silent = ClusterFacts(CLUSTER, {}, silent={TOPIC: "no leader"})

    with pytest.raises(DecisionOutdatedError):
        ended(ledger(p0=5), silent)
    with pytest.raises(TopicUnavailableError):
        plan_drain(ended(ledger(p0=5)).ledger, (TOPIC,), facts=silent)


def test_of_two_topics_the_one_that_is_gone_is_ended_and_the_other_one_is_read():
    known = ledger_of({SOURCE: {0: Progress(floor=0, end=5)}, f"{OTHER}@id9": {0: Progress(floor=0, end=2)}})
    kafka = ClusterFacts(CLUSTER, {OTHER: topic((0, 4), name=OTHER, topic_id="id9")})
    plan = ended(known, kafka, (TOPIC, OTHER))

    assert plan.ledger.ended == (SOURCE,)
    assert plan.start == {OTHER: {0: 2}}
    assert not has_ended(plan.ledger)


def test_a_table_by_a_pattern_that_matches_nothing_any_more_is_ended():
    pattern = "shop.public.orders*"
    plan = plan_drain(ledger(p0=5), (pattern,), facts=GONE, decided=stop(), by_pattern=True)

    assert plan_drain(plan.ledger, (pattern,), facts=GONE, by_pattern=True).is_idle


def test_an_end_survives_its_document():
    known = replace(ledger(p0=5), ended=(SOURCE,))

    assert Ledger.from_json(known.to_json(), table="orders") == known


def test_a_decision_with_the_names_of_an_ending_ends_it_with_its_offsets():
    known = ledger_of({SOURCE: {0: Progress(floor=0, end=5, seen=9)}})

    names = names_of_ending(known, GONE)
    after, _ = end_reading(known, GONE, named=names)

    assert names == {"step3", f"{TOPIC}/0:5-9"}
    assert (is_reading_ended(known), is_reading_ended(after)) == (False, True)
    assert names_of_ending(after, GONE) == frozenset()


def test_a_table_with_a_topic_that_still_brings_records_has_not_ended_as_a_whole():
    known = replace(ledger(p0=5), sources={**ledger(p0=5).sources, f"{OTHER}@id2": {0: Progress(0, 5)}})

    half = replace(known, ended=(SOURCE,))
    kafka = ClusterFacts(CLUSTER, {OTHER: replace(topic((0, 9)), name=OTHER, topic_id="id2")})

    assert (names_of_ending(half, kafka), is_reading_ended(half)) == (frozenset(), False)

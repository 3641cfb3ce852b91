"""What to read next, and which batch may be written: decisions on values."""

from __future__ import annotations

import pytest
from orders_in_kafka import CLUSTER, SOURCE, TOPIC, facts, ledger  # type: ignore[import-not-found]

from cdc_lakehouse.bronze.plan import never_read, plan_drain, refuse_other_topics, refuse_unless_next
from cdc_lakehouse.bronze.start import Start
from cdc_lakehouse.errors import (
    KafkaMovedError,
    OffsetsLostError,
    SupersededError,
    TopicMissingError,
    TopicUnavailableError,
)
from cdc_lakehouse.kafka.facts import ClusterFacts
from cdc_lakehouse.lake.progress import Progress


def test_a_drain_goes_from_the_ledger_to_what_kafka_holds():
    plan = plan_drain(ledger(p0=5, p1=7), (TOPIC,), facts=facts((0, 9), (3, 7)))

    assert plan.start == {TOPIC: {0: 5, 1: 7}}
    assert plan.until == {TOPIC: {0: 9, 1: 7}}
    assert plan.planned == {SOURCE: {0: (5, 9), 1: (7, 7)}}
    assert (plan.is_idle, plan.backlog, plan.amends, plan.topic_ids) == (False, 4, False, {TOPIC: "id1"})


def test_a_table_that_stands_at_the_end_is_idle():
    plan = plan_drain(ledger(p0=9), (TOPIC,), facts=facts((0, 9)))

    assert (plan.is_idle, plan.backlog) == (True, 0)


def test_a_partition_that_appeared_starts_at_its_first_record():
    plan = plan_drain(
        ledger(p0=5), (TOPIC,), facts=facts((0, 5), (0, 4)), start=Start(offsets={TOPIC: {1: 3}})
    )

    assert plan.start == {TOPIC: {0: 5, 1: 3}}


def test_a_topic_that_was_never_read_starts_where_it_is_told():
    plan = plan_drain(
        ledger(), (TOPIC,), facts=facts((0, 5), (2, 4)), start=Start(offsets={TOPIC: {0: 3, 1: 4}})
    )

    assert plan.start == {TOPIC: {0: 3, 1: 4}}
    assert [topic.name for topic in never_read(ledger(), (TOPIC, "absent"), facts=facts((0, 5)))] == [TOPIC]
    assert never_read(ledger(p0=1), (TOPIC,), facts=facts((0, 5), topic_id="id2")) == ()


def test_the_ranges_of_a_batch_bear_the_incarnation_and_leave_out_what_stood_still():
    plan = plan_drain(ledger(p0=5, p1=7), (TOPIC,), facts=facts((0, 9), (3, 8)))

    assert plan.added(plan.start, {TOPIC: {0: 6, 1: 7}}) == {SOURCE: {0: (5, 6)}}
    assert plan.added(plan.start, plan.start) == {}


def test_a_partition_that_appears_during_a_run_is_read_from_its_first_record():
    plan = plan_drain(ledger(p0=5), (TOPIC,), facts=facts((0, 9)))

    batch = plan.added(plan.start, {TOPIC: {0: 7, 1: 3, 2: 0}})
    after = plan.ledger.advanced(batch, attempt="a", seen_through=None, planned=plan.planned)

    assert batch == {SOURCE: {0: (5, 7), 1: (0, 3)}}
    assert after.sources[SOURCE] == {0: Progress(floor=0, end=7, seen=9), 1: Progress(floor=0, end=3)}


def test_compaction_and_transactions_leave_holes_that_are_no_loss():
    """A compacted log still begins at 0, whatever its first record is: Kafka says what it deleted."""
    plan = plan_drain(ledger(p0=5), (TOPIC,), facts=facts((0, 900)))

    assert plan.start == {TOPIC: {0: 5}}


def test_an_open_transaction_holds_the_end_back_and_nothing_is_new():
    """`latest` is Kafka's last stable offset: records behind it are not visible yet."""
    assert plan_drain(ledger(p0=5), (TOPIC,), facts=facts((0, 5))).is_idle


def test_a_topic_that_does_not_exist_stops_the_table():
    with pytest.raises(TopicMissingError) as caught:
        plan_drain(ledger(p0=5), (TOPIC,), facts=ClusterFacts(CLUSTER, {}))

    assert (caught.value.table, caught.value.topic) == ("orders", TOPIC)


def test_a_topic_whose_leader_is_away_is_tried_again():
    silent = ClusterFacts(CLUSTER, {}, silent={TOPIC: "partition 0: no leader"})

    with pytest.raises(TopicUnavailableError) as caught:
        plan_drain(ledger(p0=5), (TOPIC,), facts=silent)

    assert (caught.value.topic, caught.value.reason) == (TOPIC, "partition 0: no leader")


def test_a_partition_that_a_broker_does_not_list_yet_is_tried_again():
    with pytest.raises(KafkaMovedError) as caught:
        plan_drain(ledger(p0=5, p1=2), (TOPIC,), facts=facts((0, 5)))

    assert caught.value.what == f"{TOPIC} is listed without its partitions 1"


@pytest.mark.parametrize(("ids", "now"), [({TOPIC: "id2"}, "id2"), ({}, "is gone")])
def test_records_of_a_topic_that_was_made_again_meanwhile_are_not_written(ids, now):
    plan = plan_drain(ledger(p0=5), (TOPIC,), facts=facts((0, 9)))

    refuse_other_topics(plan, {TOPIC: "id1"})
    with pytest.raises(KafkaMovedError) as caught:
        refuse_other_topics(plan, ids)

    assert caught.value.what == f"{TOPIC} had the id id1 and now {now}"


@pytest.mark.parametrize("start", [4, 6])
def test_a_batch_that_does_not_start_at_the_end_is_refused(start):
    with pytest.raises(SupersededError) as caught:
        refuse_unless_next(ledger(p0=5), {SOURCE: {0: (start, 9)}}, attempt="a")

    assert (caught.value.table, caught.value.seq, caught.value.attempt) == ("orders", 3, "a")


def test_a_batch_that_starts_at_the_end_or_in_a_new_partition_may_be_written():
    refuse_unless_next(ledger(p0=5), {SOURCE: {0: (5, 9), 1: (0, 2)}}, attempt="a")


def test_a_first_look_states_where_the_table_begins_and_the_next_one_reads_from_there():
    start = Start("latest", {TOPIC: {0: 5, 1: 0}}, is_final=True)
    first = plan_drain(ledger(), (TOPIC,), facts=facts((2, 5), (0, 0)), start=start)
    again = plan_drain(first.ledger, (TOPIC,), facts=facts((2, 8), (0, 1)), start=start)

    assert (first.amends, first.is_idle, first.backlog) == (True, False, 0)
    assert first.ledger.sources == {SOURCE: {0: Progress(floor=5, end=5), 1: Progress(floor=0, end=0)}}
    assert first.ledger.decisions == {"start": {"setting": "latest", "offsets": {SOURCE: {"0": 5, "1": 0}}}}
    assert (again.amends, again.start, again.backlog) == (False, {TOPIC: {0: 5, 1: 0}}, 4)


def test_a_start_before_the_end_is_stated_before_its_records_are_read():
    start = Start("2026-01-01T00:00:00Z", {TOPIC: {0: 3}}, is_final=True)
    plan = plan_drain(ledger(), (TOPIC,), facts=facts((2, 5)), start=start)

    assert plan.ledger.sources == {SOURCE: {0: Progress(floor=3, end=3, seen=5)}}
    assert (plan.amends, plan.backlog) == (True, 2)


def test_records_that_age_out_behind_a_stated_start_are_missed():
    start = Start("latest", {TOPIC: {0: 5}}, is_final=True)
    first = plan_drain(ledger(), (TOPIC,), facts=facts((2, 5)), start=start)

    with pytest.raises(OffsetsLostError) as caught:
        plan_drain(first.ledger, (TOPIC,), facts=facts((9, 9)), start=start)

    assert caught.value.decision == f"orders={TOPIC}/0:5-9"

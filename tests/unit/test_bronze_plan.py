"""What to read next, and which batch may be written: decisions on values."""

from __future__ import annotations

import pytest

from cdc_lakehouse.bronze.plan import never_read, plan_drain, refuse_unless_next
from cdc_lakehouse.errors import OffsetsLostError, SupersededError, TopicMissingError, TopicRecreatedError
from cdc_lakehouse.kafka.facts import ClusterFacts, PartitionOffsets, TopicFacts
from cdc_lakehouse.lake.ledger import Kind, Ledger
from cdc_lakehouse.lake.progress import Progress

TOPIC = "shop.public.orders"
SOURCE = f"{TOPIC}@id1"


def ledger(**ends: int) -> Ledger:
    """`p0=5`: partition 0 was read up to 5."""
    partitions = {int(name[1:]): Progress(floor=0, end=end) for name, end in ends.items()}
    sources = {SOURCE: partitions} if partitions else {}
    return Ledger(kind=Kind.BRONZE, pipeline="shop", table="orders", cluster_id="c1", seq=3, sources=sources)


def facts(*offsets: tuple[int, int], topic_id: str = "id1") -> ClusterFacts:
    partitions = {number: PartitionOffsets(*pair) for number, pair in enumerate(offsets)}
    return ClusterFacts("c1", {TOPIC: TopicFacts(name=TOPIC, topic_id=topic_id, partitions=partitions)})


def test_a_drain_goes_from_the_ledger_to_what_kafka_holds():
    plan = plan_drain(ledger(p0=5, p1=7), (TOPIC,), facts=facts((0, 9), (3, 7)), first={})

    assert plan.start == {TOPIC: {0: 5, 1: 7}}
    assert plan.until == {TOPIC: {0: 9, 1: 7}}
    assert (plan.is_idle, plan.backlog) == (False, 4)


def test_a_table_that_stands_at_the_end_is_idle():
    plan = plan_drain(ledger(p0=9), (TOPIC,), facts=facts((0, 9)), first={})

    assert (plan.is_idle, plan.backlog) == (True, 0)


def test_a_partition_that_appeared_starts_at_its_first_record():
    plan = plan_drain(ledger(p0=5), (TOPIC,), facts=facts((0, 5), (2, 4)), first={})

    assert plan.start == {TOPIC: {0: 5, 1: 2}}


def test_a_topic_that_was_never_read_starts_where_it_is_told():
    plan = plan_drain(ledger(), (TOPIC,), facts=facts((0, 5), (2, 4)), first={TOPIC: {0: 3, 1: 4}})

    assert plan.start == {TOPIC: {0: 3, 1: 4}}
    assert [topic.name for topic in never_read(ledger(), (TOPIC, "absent"), facts=facts((0, 5)))] == [TOPIC]
    assert never_read(ledger(p0=1), (TOPIC,), facts=facts((0, 5))) == ()


def test_the_ranges_of_a_batch_bear_the_incarnation_and_leave_out_what_stood_still():
    plan = plan_drain(ledger(p0=5, p1=7), (TOPIC,), facts=facts((0, 9), (3, 8)), first={})

    assert plan.added(plan.start, {TOPIC: {0: 6, 1: 7}}) == {SOURCE: {0: (5, 6)}}
    assert plan.added(plan.start, plan.start) == {}


@pytest.mark.parametrize(
    ("kafka", "why"), [((6, 9), "aged out"), ((0, 4), "cut behind the ledger"), ((0, 0), "emptied")]
)
def test_offsets_that_are_gone_stop_the_table(kafka, why):
    with pytest.raises(OffsetsLostError) as caught:
        plan_drain(ledger(p0=5), (TOPIC,), facts=facts(kafka), first={})

    error = caught.value
    assert (error.table, error.topic, error.partition, error.next_offset) == ("orders", TOPIC, 0, 5)
    assert (error.earliest, error.latest) == kafka


def test_a_topic_that_does_not_exist_stops_the_table():
    with pytest.raises(TopicMissingError) as caught:
        plan_drain(ledger(p0=5), (TOPIC,), facts=ClusterFacts("c1", {}), first={})

    assert (caught.value.table, caught.value.topic) == ("orders", TOPIC)


def test_a_topic_that_was_made_again_stops_the_table():
    with pytest.raises(TopicRecreatedError) as caught:
        plan_drain(ledger(p0=5), (TOPIC,), facts=facts((0, 9), topic_id="id2"), first={})

    assert (caught.value.old_id, caught.value.new_id) == ("id1", "id2")


@pytest.mark.parametrize("start", [4, 6])
def test_a_batch_that_does_not_start_at_the_end_is_refused(start):
    with pytest.raises(SupersededError) as caught:
        refuse_unless_next(ledger(p0=5), {SOURCE: {0: (start, 9)}}, attempt="a")

    assert (caught.value.table, caught.value.seq, caught.value.attempt) == ("orders", 3, "a")


def test_a_batch_that_starts_at_the_end_or_in_a_new_partition_may_be_written():
    refuse_unless_next(ledger(p0=5), {SOURCE: {0: (5, 9), 1: (0, 2)}}, attempt="a")

"""What a real broker says of topics, and what is decided on it; no Spark."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cdc_lakehouse.bronze.decided import NOTHING, Decided
from cdc_lakehouse.bronze.plan import DrainPlan, plan_drain, refuse_other_topics
from cdc_lakehouse.bronze.start import Start, start_of
from cdc_lakehouse.errors import KafkaMovedError, LogCutError, OffsetsLostError, TopicRecreatedError
from cdc_lakehouse.kafka.facts import PartitionOffsets, Retention
from cdc_lakehouse.kafka.record_times import record_times
from cdc_lakehouse.lake.ledger import Kind, Ledger
from cdc_lakehouse.lake.progress import Progress

FIVE = [b"x"] * 5


def plan(broker, ledger: Ledger, topic: str, decided: Decided = NOTHING) -> DrainPlan:
    return plan_drain(ledger, (topic,), facts=broker.facts(topic), decided=decided)


def read_so_far(broker, topic: str) -> Ledger:
    """As if a drain had taken everything."""
    facts = broker.facts(topic)
    known = facts.topics[topic]
    partitions = {p: Progress(floor=o.earliest, end=o.latest) for p, o in known.partitions.items()}
    return Ledger(
        kind=Kind.BRONZE,
        pipeline="p",
        table="t",
        cluster_id=facts.cluster_id,
        sources={known.source: partitions},
    )


def test_one_round_tells_ids_offsets_and_retention_and_leaves_out_what_is_not_there(broker, topic):
    topic_id = broker.create(topic, partitions=2, retention_ms="60000", retention_bytes="5000")
    broker.send(topic, FIVE, partition=1)

    facts = broker.facts(topic, "not.there")

    known = facts.topics[topic]
    assert (list(facts.topics), known.topic_id, facts.silent) == ([topic], topic_id, {})
    assert known.partitions == {0: PartitionOffsets(0, 0, 0), 1: PartitionOffsets(0, 5, 0)}
    assert known.retention == Retention(60_000, 5_000)


def test_what_is_written_counts_records_of_open_transactions(broker, topic):
    topic_id = broker.create(topic)
    broker.send(topic, FIVE)
    with broker.transaction(topic, FIVE) as producer:
        producer.flush(30)
        written, seen = broker.cluster.written([topic, "not.there"]), broker.facts(topic)
        producer.abort_transaction(30)

    assert written == {f"{topic}@{topic_id}": {0: 10}}
    assert seen.topics[topic].partitions[0].latest == 5


def test_an_open_transaction_hides_everything_behind_its_start_until_it_ends(broker, topic):
    broker.create(topic)
    broker.send(topic, FIVE)
    with broker.transaction(topic, FIVE) as producer:
        broker.send(topic, [b"behind the open one"])
        held = broker.facts(topic).topics[topic].partitions[0]
        producer.abort_transaction(30)
    until = time.monotonic() + 10
    while broker.facts(topic).topics[topic].partitions[0].latest == 5:
        assert time.monotonic() < until
    ended = broker.facts(topic).topics[topic].partitions[0]

    assert (held.latest, ended.latest) == (5, 12)
    assert broker.offsets(topic) == [0, 1, 2, 3, 4, 10]


def test_records_that_aged_out_are_named_and_passed_over_only_on_request(broker, topic):
    broker.create(topic, partitions=2)
    ledger = read_so_far(broker, topic)
    source = next(iter(ledger.sources))
    broker.send(topic, FIVE)
    broker.age_out(topic, 3)

    with pytest.raises(OffsetsLostError) as caught:
        plan(broker, ledger, topic)
    accepted = plan(broker, ledger, topic, Decided(accept_gap=frozenset({f"{topic}/0:0-3"})))

    assert caught.value.decision == f"t={topic}/0:0-3"
    assert accepted.ledger.sources[source][0] == Progress(floor=0, end=3, gaps=((0, 3),))
    assert (accepted.start, accepted.until) == ({topic: {0: 3, 1: 0}}, {topic: {0: 5, 1: 0}})


@pytest.mark.parametrize("records", [2, 5, 9], ids=["shorter", "as long", "longer"])
def test_a_topic_that_was_made_again_is_noticed_however_long_it_is(broker, topic, records):
    old_id = broker.create(topic)
    broker.send(topic, FIVE)
    ledger = read_so_far(broker, topic)
    new_id = broker.create_again(topic)
    broker.send(topic, [b"y"] * records)

    with pytest.raises(TopicRecreatedError) as caught:
        plan(broker, ledger, topic)
    opened = plan(broker, ledger, topic, Decided(source_epoch=1))

    assert (caught.value.old_id, caught.value.new_id) == (old_id, new_id)
    assert (opened.start, opened.until) == ({topic: {0: 0}}, {topic: {0: records}})
    assert opened.topic_ids == {topic: new_id}


def test_a_topic_that_was_made_again_between_reading_and_writing_is_noticed(broker, topic):
    broker.create(topic)
    ledger = read_so_far(broker, topic)
    broker.send(topic, FIVE)
    planned = plan(broker, ledger, topic)

    refuse_other_topics(planned, broker.cluster.topic_ids([topic]))
    broker.create_again(topic)

    with pytest.raises(KafkaMovedError):
        refuse_other_topics(planned, broker.cluster.topic_ids([topic]))


def test_a_ledger_ahead_of_its_log_is_noticed(broker, topic):
    """As after a broker that came back without the end of its log: the id is the same."""
    broker.create(topic)
    broker.send(topic, FIVE)
    ledger = read_so_far(broker, topic)
    ((source, partitions),) = ledger.sources.items()
    ahead = replace(ledger, sources={source: {0: replace(partitions[0], end=8)}})

    with pytest.raises(LogCutError) as caught:
        plan(broker, ahead, topic)

    assert (caught.value.read, caught.value.held) == ("0 [0, 8)", "0 [0, 5)")


def test_partitions_that_are_added_are_read_from_their_first_record(broker, topic):
    broker.create(topic)
    ledger = read_so_far(broker, topic)
    broker.add_partitions(topic, 3)
    broker.send(topic, FIVE, partition=2)

    found = plan(broker, ledger, topic)

    assert (found.start, found.until) == ({topic: {0: 0, 1: 0, 2: 0}}, {topic: {0: 0, 1: 0, 2: 5}})


def test_the_times_of_records_are_read_at_their_offsets(broker, topic):
    broker.create(topic, partitions=3, retention_ms="-1")
    broker.send(topic, FIVE, timestamp=1_700_000_000_000)
    broker.send(topic, FIVE, timestamp=1_700_000_009_000)
    broker.send(topic, [b"x" * 900_000], partition=1, timestamp=1_700_000_001_000)

    found = record_times(broker.settings, {(topic, 0): 7, (topic, 1): 0, (topic, 2): 0})

    assert found == {(topic, 0): 1_700_000_009_000, (topic, 1): 1_700_000_001_000}


def test_the_times_of_many_partitions_are_read_in_one_round(broker, topic):
    """A client that has one record waiting must not leave the other partitions alone for a while."""
    broker.create(topic, partitions=30, retention_ms="-1")
    for partition in range(30):
        broker.send(topic, FIVE, partition=partition, timestamp=1_700_000_000_000 + partition)

    found = record_times(broker.settings, {(topic, partition): 2 for partition in range(30)})

    assert found == {(topic, partition): 1_700_000_000_000 + partition for partition in range(30)}


def test_a_start_by_time_is_the_first_record_since_then_in_each_partition(broker, topic):
    before, since, after = 1_700_000_000_000, 1_700_000_005_000, 1_700_000_009_000
    broker.create(topic, partitions=5, retention_ms="-1")
    broker.send(topic, FIVE, timestamp=before)
    broker.send(topic, FIVE, timestamp=since)
    broker.send(topic, FIVE, timestamp=before, partition=1)
    broker.send(topic, FIVE, timestamp=after, partition=2)
    broker.send(topic, FIVE, timestamp=after, partition=3)
    broker.age_out(topic, 3, partition=3)
    setting = datetime.fromtimestamp(since / 1000, UTC).isoformat()

    known = broker.facts(topic).topics[topic]
    found = start_of(setting, [known], cluster=broker.cluster)
    with broker.transaction(topic, FIVE, timestamp=after, partition=4) as producer:
        producer.flush(30)
        held_back = start_of(setting, [broker.facts(topic).topics[topic]], cluster=broker.cluster)
        producer.abort_transaction(30)

    assert found == Start(setting, {topic: {0: 5, 1: 5, 2: 0, 3: 3, 4: 0}}, is_final=True)
    assert held_back == found

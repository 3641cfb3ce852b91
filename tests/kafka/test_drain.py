"""What a real broker can hold, drained by Spark into real bronze tables."""

from __future__ import annotations

import time

import pytest
from broker import HUGE  # type: ignore[import-not-found]
from drained import ANY_TIMESTAMP, KEY, value  # type: ignore[import-not-found]
from pyspark.errors import StreamingQueryException

from cdc_lakehouse.application.failures import translated
from cdc_lakehouse.errors import KafkaMovedError, OffsetsLostError, TopicRecreatedError

ENDED = (StreamingQueryException, KafkaMovedError)
ODD_MILLIS = [-1, 1, 253_402_300_800_000, 9_223_372_036_854_775]
BEFORE_ALL = -62_135_596_800_001


def test_visible_records_arrive_once_and_aborted_or_open_ones_do_not(drained):
    broker, topic = drained.broker, drained.topic
    broker.create(topic)
    drained.send_in_transactions()
    with broker.transaction(topic, [value(5)], key=KEY) as producer:
        first = drained.run()
        held_back = drained.offsets()
        producer.commit_transaction(30)
    second = drained.run()

    assert held_back == [(0, 0), (0, 1), (0, 4)]
    assert first.counts["appended"] == 3
    assert second.counts["appended"] == 1
    assert drained.offsets() == [(0, offset) for offset in broker.offsets(topic)]
    assert drained.plan().is_idle


def test_odd_records_are_rows_and_kill_no_batch(drained):
    broker, topic = drained.broker, drained.topic
    broker.create(topic, max_message_bytes=str(HUGE), **ANY_TIMESTAMP)
    drained.send(1, key=None, headers=[("a", b"1"), ("a", None), ("", b"")])
    broker.send(topic, [b""], key=KEY)
    broker.send(topic, [None], key=None)
    broker.send(topic, [value(2)], key=b"")
    broker.send(topic, [b"x" * (20 * 1024 * 1024)], key=KEY)
    for millis in (*ODD_MILLIS, BEFORE_ALL):
        drained.send(3, timestamp=millis)

    result = drained.run()

    rows = drained.rows()
    assert [row["offset"] for row in rows] == list(range(6 + len(ODD_MILLIS)))
    assert result.counts["appended"] == len(rows)
    assert [row["decode_error"] and row["decode_error"]["code"] for row in rows[:5]] == [
        "missing_key",
        "bad_frame",
        None,
        "bad_frame",
        "record_too_large",
    ]
    assert result.errors_by_code == {"missing_key": 1, "bad_frame": 2, "record_too_large": 1}
    assert [(row["raw_key"], row["raw_value"]) for row in rows[1:4]] == [
        (KEY, b""),
        (None, None),
        (b"", value(2)),
    ]
    assert [(each["key"], each["value"]) for each in rows[0]["headers"]] == [
        ("a", b"1"),
        ("a", None),
        ("", b""),
    ]
    assert len(rows[4]["raw_value"]) == 20 * 1024 * 1024
    assert [row["micros"] for row in rows[5:-1]] == [millis * 1000 for millis in ODD_MILLIS]
    assert rows[-1]["micros"] == pytest.approx(BEFORE_ALL * 1000, rel=0.01)
    assert drained.plan().is_idle


def test_a_topic_made_again_goes_on_in_an_epoch_of_its_own(drained):
    broker, topic = drained.broker, drained.topic
    broker.create(topic)
    drained.send(1, 2)
    drained.run()
    new_id = broker.create_again(topic)
    drained.send(3)

    with pytest.raises(TopicRecreatedError):
        drained.plan()
    result = drained.run(source_epoch={"orders": 1})

    assert result.decisions["source_epoch"]["epoch"] == 1
    assert drained.offsets() == [(0, 0), (0, 0), (0, 1)]
    assert [row["topic_id"] == new_id for row in drained.rows()].count(True) == 1
    assert drained.plan(source_epoch={"orders": 1}).is_idle


def test_a_topic_made_again_after_the_plan_writes_nothing(drained):
    broker, topic = drained.broker, drained.topic
    broker.create(topic)
    drained.send(1)
    drained.run()
    drained.send(2)
    plan = drained.plan()
    broker.create_again(topic)
    drained.send(*range(3, 7))

    with pytest.raises(ENDED) as caught:
        drained.run(plan)

    cause = translated(caught.value, table="orders", attempt="a", bootstrap="b", root="r")
    assert isinstance(cause, KafkaMovedError)
    assert drained.offsets() == [(0, 0)]


def test_partitions_added_after_the_plan_are_read_by_the_next_run(drained):
    broker, topic = drained.broker, drained.topic
    broker.create(topic)
    drained.send(1)
    plan = drained.plan()
    broker.add_partitions(topic, 2)
    drained.send(2, partition=1)

    with pytest.raises(ENDED) as caught:
        drained.run(plan)
    drained.run()

    cause = translated(caught.value, table="orders", attempt="a", bootstrap="b", root="r")
    assert isinstance(cause, KafkaMovedError)
    assert drained.offsets() == [(0, 0), (1, 0)]


def test_offsets_that_compaction_left_empty_are_no_gap(drained):
    broker, topic = drained.broker, drained.topic
    broker.compact_soon()
    broker.create(topic, cleanup_policy="compact", min_cleanable_dirty_ratio="0.001", segment_ms="100")
    drained.send(1, 2, 3)
    until = time.monotonic() + 60
    while len(left := broker.offsets(topic)) > 2:
        assert time.monotonic() < until, f"nothing was compacted: {left}"
        drained.send(4)  # the segment that is written to is never compacted

    result = drained.run()

    assert drained.offsets() == [(0, offset) for offset in broker.offsets(topic)]
    assert (result.gaps, result.errors_by_code, drained.plan().is_idle) == ({}, {}, True)
    assert result.ranges == {topic: {"0": (0, broker.facts(topic).topics[topic].partitions[0].latest)}}


def test_an_accepted_gap_lets_the_rest_arrive(drained):
    broker, topic = drained.broker, drained.topic
    broker.create(topic)
    drained.send(1)
    drained.run()
    drained.send(*range(2, 6))
    broker.age_out(topic, 3)

    with pytest.raises(OffsetsLostError) as caught:
        drained.plan()
    result = drained.run(accept_gap=(caught.value.decision,))

    assert drained.offsets() == [(0, 0), (0, 3), (0, 4)]
    assert result.gaps == {topic: {"0": [[1, 3]]}}


def test_a_table_that_begins_at_the_end_reads_all_that_comes_behind_its_first_look(drained):
    broker, topic = drained.broker, drained.topic
    broker.create(topic, partitions=2)
    drained.send(1, 2)

    first = drained.run(start="latest")
    is_idle = drained.plan(start="latest").is_idle
    drained.send(3)
    drained.send(4, partition=1)
    second = drained.run(start="latest")

    assert (first.counts["appended"], first.batches, is_idle) == (0, 0, True)
    assert first.decisions["start"]["setting"] == "latest"
    assert second.counts["appended"] == 2
    assert drained.offsets() == [(0, 2), (1, 0)]
    assert drained.plan(start="latest").is_idle

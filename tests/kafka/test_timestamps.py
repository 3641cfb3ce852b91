"""Timestamps that Spark's source cannot give out: their batch is read another way."""

from __future__ import annotations

from functools import partial

import pytest
from broker import Broker  # type: ignore[import-not-found]
from drained import ANY_TIMESTAMP, KEY, value  # type: ignore[import-not-found]
from pyspark.sql import DataFrame, SparkSession

from cdc_lakehouse.bronze.read_again import read_again as read_outside_spark
from cdc_lakehouse.errors import KafkaMovedError
from cdc_lakehouse.lake.spans import Spans


def test_timestamps_that_fit_nowhere_are_null_and_cost_no_record(drained):
    """Spark's source ends the query with the first of them."""
    broker, topic = drained.broker, drained.topic
    broker.create(topic, partitions=2, **ANY_TIMESTAMP)
    drained.send(1, timestamp=1_700_000_000_000, headers=[("a", b"1")])
    drained.send(2, timestamp=2**62)
    with broker.transaction(topic, [value(3)], key=KEY) as producer:
        producer.abort_transaction(30)
    broker.send(topic, [None], key=KEY, timestamp=2**63 - 1)
    drained.send(4, timestamp=-(2**62))
    drained.send(5, partition=1, timestamp=1_700_000_000_001)
    with broker.transaction(topic, [value(6)], key=KEY) as producer:
        producer.abort_transaction(30)

    result = drained.run()

    rows = drained.rows()
    visible = [(p, offset) for p in (0, 1) for offset in broker.offsets(topic, p)]
    assert drained.offsets() == visible == [(0, 0), (0, 1), (0, 4), (0, 5), (1, 0)]
    assert [row["micros"] for row in rows] == [1_700_000_000_000_000, None, None, None, 1_700_000_000_001_000]
    assert [(each["key"], each["value"]) for each in rows[0]["headers"]] == [("a", b"1")]
    assert [row["after"] and row["after"]["note"] for row in rows] == [
        "note 1",
        "note 2",
        None,
        "note 4",
        "note 5",
    ]
    assert (result.batches, result.errors_by_code) == (1, {})
    assert drained.plan().is_idle


def test_what_is_gone_before_it_is_read_again_writes_nothing(drained):
    broker, topic = drained.broker, drained.topic
    broker.create(topic, **ANY_TIMESTAMP)
    drained.send(1)
    drained.send(2, timestamp=2**62)
    plan = drained.plan()
    aged_out = partial(_aged_out_first, broker, topic)

    with pytest.raises(KafkaMovedError):
        drained.run(plan, read_again=aged_out)

    assert drained.offsets() == []


def _aged_out_first(broker: Broker, topic: str, session: SparkSession, spans: Spans) -> DataFrame:
    broker.age_out(topic, 1)
    return read_outside_spark(session, spans, settings=broker.settings)

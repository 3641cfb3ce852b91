"""What a real broker can hold, drained by Spark into real bronze tables."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import pytest
from broker import HUGE, Broker  # type: ignore[import-not-found]
from chain import Chain, table_of  # type: ignore[import-not-found]
from orders import OLD, order  # type: ignore[import-not-found]
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from cdc_lakehouse.application.failures import translated
from cdc_lakehouse.bronze.ingest import ReadAgain, TableIngest
from cdc_lakehouse.bronze.plan import DrainPlan
from cdc_lakehouse.bronze.planning import plan_table
from cdc_lakehouse.bronze.read_again import read_again as read_outside_spark
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import JobRequest, TableResult
from cdc_lakehouse.errors import KafkaMovedError, OffsetsLostError, TopicRecreatedError
from cdc_lakehouse.lake.ledger import Ranges
from cdc_lakehouse.registry.client import SchemaRegistry

KEY = order(0, 1).key
ENDED = (StreamingQueryException, KafkaMovedError)
ANY_TIMESTAMP = {
    "message_timestamp_before_max_ms": str(2**63 - 1),
    "message_timestamp_after_max_ms": str(2**63 - 1),
    "retention_ms": "-1",  # by their own timestamps records are old enough to be deleted
}
ODD_MILLIS = [-1, 1, 253_402_300_800_000, 9_223_372_036_854_775]
BEFORE_ALL = -62_135_596_800_001
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@dataclass(frozen=True)
class Drained:
    """One table on its topic; each call is a run of its own."""

    broker: Broker
    chain: Chain
    topic: str

    @property
    def table(self) -> Table:
        return cast(Table, table_of("orders", self.topic))

    def send(self, *numbers: int, **message: Any) -> None:
        """Orders that decode, all with one key."""
        self.broker.send(self.topic, [value(number) for number in numbers], **{"key": KEY, **message})

    def plan(self, **decisions: Any) -> DrainPlan:
        application = self.chain.application(self.table)
        request = JobRequest(job=application.request.job, pipeline="p", tables=(), **decisions)
        object.__setattr__(application, "request", request)
        cluster = self.broker.cluster
        facts = cluster.facts([self.topic])
        session = lambda: self.chain.session  # noqa: E731
        return plan_table(application, self.table, cluster=cluster, facts=facts, session=session)

    def run(
        self, plan: DrainPlan | None = None, *, read_again: ReadAgain | None = None, **decisions: Any
    ) -> TableResult:
        known = plan or self.plan(**decisions)
        run = TableIngest(
            self.chain.application(self.table),
            self.table,
            plan=known,
            registry=cast(SchemaRegistry, self.chain.registry),
            topic_ids=self.broker.cluster.topic_ids,
            read_again=read_again or partial(read_outside_spark, settings=self.broker.settings),
        )
        return run.run(kafka=self._java())

    def rows(self) -> list[dict[str, Any]]:
        """Times as numbers: Python has no year 10000."""
        columns = "* EXCEPT (kafka_timestamp), unix_micros(kafka_timestamp) AS micros"
        rows = self.chain.sql(f"SELECT {columns} FROM {{t}}", self.chain.lake.bronze("orders"))
        return sorted(rows, key=lambda row: (row["partition"], row["offset"]))

    def offsets(self) -> list[tuple[int, int]]:
        return [(row["partition"], row["offset"]) for row in self.rows()]

    def _java(self) -> dict[str, str]:
        known = self.broker.settings
        login = f'username="{known["sasl.username"]}" password="{known["sasl.password"]}"'
        return {
            "bootstrap.servers": known["bootstrap.servers"],
            "security.protocol": known["security.protocol"],
            "sasl.mechanism": known["sasl.mechanism"],
            "sasl.jaas.config": f"{LOGIN} required {login};",
        }


@pytest.fixture
def drained(broker, chain, topic) -> Drained:
    (key_id, key), (value_id, value) = OLD.schemas.items()
    chain.registry.register(topic, keys={key_id: key}, values={value_id: value})
    return Drained(broker, chain, topic)


def value(number: int) -> bytes:
    sent = order(number, number, note=f"note {number}").value
    assert sent is not None
    return bytes(sent)


def test_visible_records_arrive_once_and_aborted_or_open_ones_do_not(drained):
    broker, topic = drained.broker, drained.topic
    broker.create(topic)
    drained.send(1, 2)
    with broker.transaction(topic, [value(3)], key=KEY) as producer:
        producer.abort_transaction(30)
    with broker.transaction(topic, [value(4)], key=KEY) as producer:
        producer.commit_transaction(30)
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
        None,
        "bad_frame",
        None,
        "bad_frame",
        "record_too_large",
    ]
    assert result.errors_by_code == {"bad_frame": 2, "record_too_large": 1}
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

    with pytest.raises(OffsetsLostError):
        drained.plan()
    result = drained.run(accept_gap=("orders",))

    assert drained.offsets() == [(0, 0), (0, 3), (0, 4)]
    assert result.gaps == {topic: {"0": [[1, 3]]}}


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


def _aged_out_first(broker: Broker, topic: str, session: SparkSession, ranges: Ranges) -> DataFrame:
    broker.age_out(topic, 1)
    return read_outside_spark(session, ranges, settings=broker.settings)

"""The usual way, to compare with: what it loses and doubles in the same states.

A `pandas_udf` over `AvroDeserializer` that makes NULL of what it cannot read, `df.write` in append mode,
and one Spark checkpoint that remembers the progress.
"""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.config.kafka_settings import java_kafka_settings
from cdc_lakehouse.config.rest_settings import registry_settings
from cdc_lakehouse.config.settings import Role, connection_from_environment
from cdc_lakehouse.lake.rows import read_rows
from cdc_lakehouse.lake.snapshot import newest_snapshot
from crash.mutations import Kind, Mutation, Storage, states_of  # type: ignore[import-not-found]
from crash.records import PARTITIONS, Sent, topic_of  # type: ignore[import-not-found]

JOB = "baseline"
CHECKPOINT = "checkpoint"
_TRIES = 3


def drained(session: SparkSession, order: Mapping[str, Any]) -> None:
    for table in order.get("tables", tuple(PARTITIONS)):
        _drained(session.newSession(), order, table)


def _drained(session: SparkSession, order: Mapping[str, Any], table: str) -> None:
    kafka = java_kafka_settings(connection_from_environment(Role.KAFKA))
    target = f"{order['root']}/{table}"
    read = F.pandas_udf(
        _reader(registry_settings(connection_from_environment(Role.REGISTRY)).url, table), "string"
    )

    def append(batch: DataFrame, _batch_id: int) -> None:
        rows = batch.select("topic", "partition", "offset", read("value").alias("value"))
        rows.write.format("delta").mode("append").save(target)

    records = (
        session.readStream.format("kafka")
        .options(**{f"kafka.{name}": value for name, value in kafka.items()})
        .option("subscribe", topic_of(table))
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", order["max_offsets"])
        .load()
    )
    query = (
        records.writeStream.foreachBatch(append)
        .option("checkpointLocation", f"{target}/{CHECKPOINT}")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def _reader(url: str, table: str) -> Any:
    topic = topic_of(table)

    def read(values: pd.Series) -> pd.Series:
        from confluent_kafka.schema_registry import SchemaRegistryClient
        from confluent_kafka.schema_registry.avro import AvroDeserializer
        from confluent_kafka.serialization import MessageField, SerializationContext

        deserializer = AvroDeserializer(SchemaRegistryClient({"url": url}), schema_str=None)
        context = SerializationContext(topic, MessageField.VALUE)

        def one(value: bytes | None) -> str | None:
            try:
                return None if value is None else json.dumps(deserializer(value, context), default=str)
            except Exception:  # noqa: BLE001 - this is how it is usually written
                return None

        return values.map(one)

    return read


@dataclass(slots=True)
class Losses:
    states: int = 0
    bad_states: int = 0
    lost: int = 0
    duplicated: int = 0
    unseen: int = 0
    """Rows of records that no consumer of committed data sees."""
    nulls: int = 0
    """Undecodable records whose bytes are gone."""
    stuck: int = 0
    """States from which it did not go on by itself."""


def sampled(mutations: Sequence[Mutation], *, count: int, seed: int) -> list[tuple[str, Storage]]:
    """States of kinds that ours have too: prefixes, torn writes, checkpoints deleted, halved, older."""
    chance, states = random.Random(seed), states_of(mutations)
    found: list[tuple[str, Storage]] = []
    while len(found) < count:
        place = chance.randrange(1, len(mutations))
        storage = states[place]
        kind = ("prefix", "torn", "deleted", "halved", "older")[len(found) % 5]
        older = states[chance.randrange(place)]
        if kind == "torn":
            if mutations[place].kind is not Kind.WRITE:
                continue
            storage = storage.after(mutations[place].half())
        elif kind != "prefix":
            part = chance.choice(("/offsets/", "/commits/", "/metadata"))
            storage = storage.without(
                lambda p, k=kind, part=part: _is_checkpoint(p) and (k != "halved" or part in p)
            )
        if kind == "older":
            storage = storage.with_files({p: d for p, d in older.files.items() if _is_checkpoint(p)})
        found.append((f"{kind} {place}", storage))
    return found


def _is_checkpoint(path: str) -> bool:
    return path.split("/")[1:2] == [CHECKPOINT]


def losses(bench: Any, mutations: Sequence[Mutation], *, count: int, seed: int) -> Losses:
    """Each state is run as often as ours may be, then looked at."""
    found = Losses()
    for _, storage in sampled(mutations, count=count, seed=seed):
        lake = storage.written_to(bench.folder())
        before = (found.lost, found.duplicated, found.stuck)
        found.states += 1
        for _ in range(_TRIES):
            if _runs(bench, lake):
                break
        else:
            found.stuck += 1
        for table in PARTITIONS:
            _counted(found, lake / table, bench.world.sent[table])
        found.bad_states += before != (found.lost, found.duplicated, found.stuck)
        shutil.rmtree(lake)
    return found


def _runs(bench: Any, lake: Path) -> bool:
    try:
        bench.driver.run(lake, JOB, max_offsets=100_000)
    except RuntimeError:
        return False
    return True


def _counted(found: Losses, table: Path, sent: Sequence[Sent]) -> None:
    snapshot = newest_snapshot(table.as_uri())
    rows = read_rows(table.as_uri()) if snapshot is not None else None
    told = [] if rows is None else rows.to_pylist()
    seen = Counter((row["partition"], row["offset"]) for row in told)
    visible = {(each.partition, each.offset): each.record for each in sent}
    found.lost += len(visible.keys() - seen.keys())
    found.unseen += len(seen.keys() - visible.keys())
    found.duplicated += sum(count - 1 for count in seen.values())
    found.nulls += sum(
        1
        for row in told
        if row["value"] is None
        and (record := visible.get((row["partition"], row["offset"])))
        and record.value
    )

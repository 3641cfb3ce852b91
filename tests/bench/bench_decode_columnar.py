"""Decoding alone, one core: the columnar decoder beside readers of single records, in one process.

    PYTHONPATH=include:tests/unit python tests/bench/bench_decode_columnar.py [--profile [--corrupt]]

Every variant decodes the same Debezium envelopes, key and value; all are interleaved, the median counts.
Time is CPU time of the process, which other work on the machine disturbs less than the clock.
"""

from __future__ import annotations

import cProfile
import io
import json
import pstats
import random
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import fastavro
import pyarrow as pa
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from debezium_records import (  # type: ignore[import-not-found]
    columns,
    decimal,
    envelope_schema,
    event,
    field,
    framed,
    kafka_batch,
    key_schema,
    optional,
    payload,
    plans,
    raw_schema,
    semantic,
)

from cdc_lakehouse.debezium.decode import decode

ROWS, KEY_ID, FIRST_ID, IDS = 10_000, 7, 100, 50
BASELINE_ROWS = 1_000
FIELDS = [
    field("id", "long"),
    field("customer_id", "long"),
    field("status", "string"),
    field("note", optional("string")),
    field("total", optional(decimal(10, 2))),
    field("placed_on", optional(semantic("int", "io.debezium.time.Date"))),
    field("changed_at", optional(semantic("string", "io.debezium.time.ZonedTimestamp"))),
    field("quantity", "int"),
    field("address", optional("string")),
    field("paid", optional("boolean")),
    field("created", semantic("long", "io.debezium.time.MicroTimestamp")),
]
SCHEMA = envelope_schema(FIELDS)


def values(count: int) -> list[dict[str, Any]]:
    chance = random.Random(7)  # noqa: S311
    return [_event(number, chance) for number in range(count)]


def _event(number: int, chance: random.Random) -> dict[str, Any]:
    lsn, millis = 26_000_000 + 48 * number, 1_700_000_000_000 + number
    row = {
        "id": number,
        "customer_id": chance.randrange(10**6),
        "status": chance.choice(["new", "paid", "shipped"]),
        "note": "note " + "x" * chance.randrange(120, 240),
        "total": chance.randrange(10**6).to_bytes(4, "big"),
        "placed_on": 19_000 + number % 500,
        "changed_at": f"2024-02-{number % 28 + 1:02d}T21:59:{number % 60:02d}.{123_456 + number:06d}Z",
        "quantity": number % 9,
        "address": f"Street {number}, City {number % 100}",
        "paid": number % 2 == 0,
        "created": 1_700_000_000_000_000 + 1_000 * number,
    }
    times = {"ts_ms": millis, "ts_us": millis * 1000 + 7, "ts_ns": millis * 1_000_000 + 7_000}
    return dict(event("u", after=row, lsn=lsn, sequence=f'["{lsn - 96}","{lsn}"]', txId=number // 5, **times))


def spark_batch(records: list[tuple[bytes, bytes]]) -> pa.RecordBatch:
    """As Spark hands it over: read from one IPC message."""
    sink, batch = io.BytesIO(), kafka_batch(*records)
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return pa.ipc.open_stream(sink.getvalue()).read_next_batch()


def corrupted(records: list[tuple[bytes, bytes]], share: float) -> list[tuple[bytes, bytes]]:
    chance, damaged = random.Random(3), list(records)  # noqa: S311
    for place in chance.sample(range(len(records)), round(len(records) * share)):
        key, value = records[place]
        at = chance.randrange(5, len(value))
        damaged[place] = key, chance.choice([value[:at], value[:at] + b"\xff" + value[at + 1 :]])
    return damaged


def fastavro_of(records: list[tuple[bytes, bytes]]) -> Callable[[], None]:
    value = fastavro.parse_schema(raw_schema(SCHEMA))
    key = fastavro.parse_schema(key_schema())

    def run() -> None:
        for one, other in records[:BASELINE_ROWS]:
            fastavro.schemaless_reader(io.BytesIO(one[5:]), key)
            fastavro.schemaless_reader(io.BytesIO(other[5:]), value)

    return run


def avro_deserializer_of(sent: list[dict[str, Any]]) -> Callable[[], None]:
    registry = SchemaRegistryClient.new_client({"url": "mock://bench"})
    ids = {
        part: registry.register_schema(f"t-{part}", Schema(json.dumps(schema), "AVRO"))
        for part, schema in (("key", key_schema()), ("value", SCHEMA))
    }
    read = AvroDeserializer(registry, schema_str=None)
    contexts = SerializationContext("t", MessageField.KEY), SerializationContext("t", MessageField.VALUE)
    records = [
        (framed(ids["key"], key_schema(), {"id": each["after"]["id"]}), framed(ids["value"], SCHEMA, each))
        for each in sent[:BASELINE_ROWS]
    ]

    def run() -> None:
        for key, value in records:
            read(key, contexts[0])
            read(value, contexts[1])

    return run


def main() -> None:
    sent = values(ROWS)
    keys = [framed(KEY_ID, key_schema(), {"id": each["after"]["id"]}) for each in sent]
    payloads = [payload(SCHEMA, each) for each in sent]
    texts = {KEY_ID: json.dumps(key_schema())}
    for number in range(IDS):
        texts[FIRST_ID + number] = json.dumps({**SCHEMA, "doc": f"version {number}"})
    told = plans(columns=columns(SCHEMA), schemas=texts)

    def records(ids: int) -> list[tuple[bytes, bytes]]:
        return [
            (key, b"\x00" + (FIRST_ID + place % ids).to_bytes(4, "big") + data)
            for place, (key, data) in enumerate(zip(keys, payloads, strict=True))
        ]

    one, many = spark_batch(records(1)), spark_batch(records(IDS))
    bad = spark_batch(corrupted(records(1), 0.001))
    variants: dict[str, tuple[int, Callable[[], Any]]] = {
        "AvroDeserializer": (BASELINE_ROWS, avro_deserializer_of(sent)),
        "fastavro": (BASELINE_ROWS, fastavro_of(records(1))),
        "columns, one id": (ROWS, lambda: decode(one, told)),
        "columns, 50 ids": (ROWS, lambda: decode(many, told)),
        "columns, 0.1 % corrupt": (ROWS, lambda: decode(bad, told)),
    }
    assert decode(one, told).column("decode_error").null_count == ROWS
    if "--profile" in sys.argv:
        with cProfile.Profile() as profile:
            for _ in range(30):
                decode(bad if "--corrupt" in sys.argv else one, told)
        pstats.Stats(profile).sort_stats("tottime").print_stats(30)
        return
    print(f"{sum(map(len, payloads)) / ROWS + 5:.0f} bytes per value, {ROWS} rows per batch")
    rates = measured(variants)
    for name, found in rates.items():
        middle = statistics.median(found)
        ratio = middle / statistics.median(rates["AvroDeserializer"])
        extremes = f"({min(found) / 1e3:.1f}..{max(found) / 1e3:.1f})"
        print(f"{name:24} {middle / 1e3:9.1f} k/s  {extremes:20} {ratio:6.1f}x")


def measured(
    variants: dict[str, tuple[int, Callable[[], Any]]], repetitions: int = 21
) -> dict[str, list[float]]:
    rates: dict[str, list[float]] = {name: [] for name in variants}
    for repetition in range(repetitions + 1):
        for name, (rows, run) in variants.items():
            start = time.process_time()
            run()
            if repetition:
                rates[name].append(rows / (time.process_time() - start))
    return rates


if __name__ == "__main__":
    main()

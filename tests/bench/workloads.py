"""What is measured: records of a fixed seed, as Debezium's PostgreSQL connector would send them."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import fastavro
import pyarrow as pa

from unit.debezium_records import (  # type: ignore[import-not-found]
    ROW_FIELDS,
    envelope_schema,
    event,
    field,
    key_schema,
    optional,
    raw_schema,
)

SEED = 20260101
BATCH = 10_000
"""Rows per Arrow batch: what Spark gives a Python worker by default."""
KEY_ID, VALUE_ID = 1, 2
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    row_fields: tuple[dict[str, Any], ...]
    row: Callable[[random.Random, int], dict[str, Any]]

    @property
    def key_text(self) -> str:
        return json.dumps(key_schema())

    @property
    def value_text(self) -> str:
        return json.dumps(envelope_schema(list(self.row_fields)))

    def records(self, count: int) -> list[tuple[bytes, bytes]]:
        """(key, value) in the Confluent frame; the same ones for the same count, everywhere."""
        chance = random.Random(SEED)  # noqa: S311 - not a secret
        key = fastavro.parse_schema(raw_schema(json.loads(self.key_text)))
        value = fastavro.parse_schema(raw_schema(json.loads(self.value_text)))
        return [
            (_framed(KEY_ID, key, {"id": number}), _framed(VALUE_ID, value, self._event(chance, number)))
            for number in range(count)
        ]

    def _event(self, chance: random.Random, number: int) -> Any:
        """Seven updates, two inserts and a delete in ten."""
        op = chance.choices("ucd", weights=(7, 2, 1))[0]
        row = self.row(chance, number)
        before = {**dict.fromkeys(row), "id": number} if op == "d" else None
        return event(op, before=before, after=None if op == "d" else row, lsn=26_000_000 + 8 * number)


def batches(records: list[tuple[bytes, bytes]]) -> Iterator[pa.RecordBatch]:
    """As the Avro UDF gets them from Spark's Kafka source."""
    for start in range(0, len(records), BATCH):
        part = records[start : start + BATCH]
        count = len(part)
        yield pa.record_batch(
            {
                "key": pa.array([key for key, _ in part], pa.binary()),
                "value": pa.array([value for _, value in part], pa.binary()),
                "topic": pa.array(["bench"] * count, pa.string()),
                "partition": pa.array([0] * count, pa.int32()),
                "offset": pa.array(range(start, start + count), pa.int64()),
                "timestamp": pa.array([0] * count, pa.timestamp("us", tz="UTC")),
                "headers": pa.nulls(count, _HEADERS),
            }
        )


def _framed(schema_id: int, schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return b"\x00" + schema_id.to_bytes(4, "big") + out.getvalue()


def _narrow(chance: random.Random, number: int) -> dict[str, Any]:
    return {"id": number, "note": f"note {chance.randrange(10**6)}"}


def _typical(chance: random.Random, number: int) -> dict[str, Any]:
    cents = chance.randrange(-(10**6), 10**8)
    return {
        "id": number,
        "note": None if chance.random() < 0.3 else "größer " * chance.randrange(1, 8),
        "total": cents.to_bytes(cents.bit_length() // 8 + 1, "big", signed=True),
        "placed_on": 19_000 + chance.randrange(1000),
        "changed_at": f"2026-01-{chance.randrange(1, 29):02}T10:11:12.{chance.randrange(10**6):06}Z",
        "rank": chance.randrange(1000),
        "photo": chance.randbytes(chance.randrange(40)),
        "tags": [f"tag{chance.randrange(50)}" for _ in range(chance.randrange(4))],
    }


WORKLOADS = (
    Workload("narrow", (field("id", "long"), field("note", optional("string"))), _narrow),
    Workload("typical", tuple(ROW_FIELDS), _typical),
)

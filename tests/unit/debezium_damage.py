"""Batches decoded twice: as columns, and record by record; and records to damage."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from debezium_records import (  # type: ignore[import-not-found]
    FULL,
    ROW_FIELDS,
    columns,
    decimal,
    envelope_schema,
    event,
    field,
    framed,
    kafka_batch,
    key_schema,
    optional,
    plans,
    semantic,
)

from cdc_lakehouse.debezium import decode as decoding
from cdc_lakehouse.debezium.plans import DecodePlans

CONNECT = "org.apache.kafka.connect.data."
VARIABLE = {
    "type": "record",
    "name": "VariableScaleDecimal",
    "namespace": "io.debezium.data",
    "connect.name": "io.debezium.data.VariableScaleDecimal",
    "fields": [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}],
}
SPARSE = {
    "type": "record",
    "name": "io.debezium.data.SparseDoubleVector",
    "connect.name": "io.debezium.data.SparseDoubleVector",
    "fields": [
        field("dimensions", {"type": "int", "connect.type": "int16"}),
        field(
            "vector",
            {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "io.confluent.connect.avro.MapEntry",
                    "fields": [
                        field("key", {"type": "int", "connect.type": "int16"}),
                        field("value", "double"),
                    ],
                },
            },
        ),
    ],
}
WIDE_FIELDS = [
    *ROW_FIELDS,
    field("flag", optional("boolean")),
    field("weight", optional("float")),
    field("height", "double"),
    field("big", optional(decimal(38, 4))),
    field("huge", optional(decimal(64, 2))),
    field("free", optional(VARIABLE)),
    field("uuid", optional(semantic("string", "io.debezium.data.Uuid"))),
    field("moment", optional(semantic("long", "io.debezium.time.MicroTimestamp"))),
    field("nano", optional(semantic("long", "io.debezium.time.NanoTimestamp"))),
    field("connected", optional(semantic("long", CONNECT + "Timestamp", logicalType="timestamp-millis"))),
    field("time", optional(semantic("int", "io.debezium.time.Time"))),
    field("days", optional({"type": "array", "items": ["null", semantic("int", "io.debezium.time.Date")]})),
    field("prices", optional({"type": "array", "items": ["null", decimal(4, 1)]})),
    field("store", optional({"type": "map", "values": ["null", "string"]})),
    field("mood", {"type": "enum", "name": "Mood", "symbols": ["glad", "sad"]}),
    field("day", optional(semantic("string", "io.debezium.time.IsoDate"))),
    field("clock", optional(semantic("string", "io.debezium.time.IsoTime"))),
    field("wall", optional(semantic("string", "io.debezium.time.IsoTimestamp"))),
    field("sparse", optional(SPARSE)),
    field("hash", optional({"type": "fixed", "name": "Hash", "size": 4})),
]
SCHEMA = envelope_schema(WIDE_FIELDS)
KEY_ID, VALUE_ID = 7, 9
FASTAVRO_IS_LAX = {
    "boolean that is neither 0 nor 1",
    "int of more than 32 bits",
    "union branch that the schema does not have",  # -1 and the like count from the end; 0x80 0x00 is 0
    "enum symbol that the schema does not have",  # -1 as well
    "number of more than 64 bits",
    "negative length",
    "more items than bytes",
}
_EMPTY = {each["name"]: None for each in WIDE_FIELDS}
FULL_ROW = {
    **_EMPTY,
    **FULL,
    "flag": True,
    "weight": 0.5,
    "height": -1e300,
    "big": (10**37).to_bytes(16, "big"),
    "huge": b"\x30\x39",
    "free": {"scale": 3, "value": b"\x04\xd2"},
    "uuid": "b68a35a7-17ad-35b3-af2a-ae46edb4545a",
    "moment": 1_700_000_000_123_456,
    "nano": -1,
    "connected": 1_700_000_000_123,
    "time": 86_399_999,
    "days": [1, None, -719_162],
    "prices": [b"\x0f", None],
    "store": {"a": None, "b": "c"},
    "mood": "sad",
    "day": "2024-02-29Z",
    "clock": "23:59:59.5Z",
    "wall": "2024-02-29T23:59:59.123456Z",
    "sparse": {"dimensions": 5, "vector": [{"key": 1, "value": 0.5}]},
    "hash": b"abcd",
}
BARE_ROW = {**_EMPTY, "id": 2**40, "height": 0.0, "mood": "glad", "changed_at": "2024-02-29T21:59:59.123456Z"}
EVENTS = [
    event("u", before=BARE_ROW, after=FULL_ROW),
    event("c", after=BARE_ROW, sequence='[null,"26002808"]', ts_us=None),
    event("d", before=FULL_ROW, lsn=None),
    event("r", after=BARE_ROW, snapshot="last", lsn=None, sequence='[null,"26002808"]'),
    {**event("t"), "transaction": None},
]
INAPPLICABLE = [
    event("z", after=BARE_ROW),
    event("", before=BARE_ROW),
    event("d", before=FULL_ROW, lsn=None, sequence=None),
    event("r", after=BARE_ROW, snapshot="last", connector="mysql", lsn=None),
    event("t", lsn=None, sequence="[26002768]"),
    event("u", before=FULL_ROW),
]
"""Sound bytes of events that nobody can apply."""
SOUND = {
    *("value_out_of_range", "bad_value"),
    *("unknown_operation", "missing_key", "missing_position", "missing_after"),
}
"""Faults of bytes that Avro takes."""


def key_bytes(number: int = 1) -> bytes:
    return bytes(framed(KEY_ID, key_schema(), {"id": number}))


def value_bytes(value: Any) -> bytes:
    return bytes(framed(VALUE_ID, SCHEMA, value))


def told(**changes: Any) -> DecodePlans:
    schemas = {KEY_ID: json.dumps(key_schema()), VALUE_ID: json.dumps(SCHEMA)}
    known: DecodePlans = plans(**{"columns": columns(SCHEMA), "schemas": schemas, **changes})
    return known


Record = tuple[bytes | None, bytes | None]


def decoded_both_ways(
    records: Sequence[Record], known: DecodePlans | None = None
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    return batch_decoded_both_ways(kafka_batch(*records), known or told())


def batch_decoded_both_ways(
    batch: pa.RecordBatch, known: DecodePlans | None = None
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    known = known or told()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "SMALL_GROUP", 1)
        by_columns = decoding.decode(batch, known)
        patch.setattr(decoding, "SMALL_GROUP", len(batch) + 1)
        one_by_one = decoding.decode(batch, known)
    by_columns.validate(full=True)
    return by_columns, one_by_one


def first_difference(found: tuple[pa.RecordBatch, pa.RecordBatch]) -> Any:
    """None when both are the same; NaN is NaN."""
    if found[0].equals(found[1]):
        return None
    rows = (_numbered(each).to_pylist() for each in found)
    for place, (one, other) in enumerate(zip(*rows, strict=True)):
        if repr(one) != repr(other):
            return place, {
                name: (one[name], other[name]) for name in one if repr(one[name]) != repr(other[name])
            }
    return None


def _numbered(batch: pa.RecordBatch) -> pa.RecordBatch:
    """With numbers for moments: years of `datetime` end at 9999."""
    return batch.cast(pa.schema([field.with_type(_number(field.type)) for field in batch.schema]))


def _number(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type_):
        return pa.int64()
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(_number(type_.value_type)))
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_number(field.type)) for field in type_])
    return type_


def truncations(data: bytes) -> Iterator[bytes]:
    return (data[:end] for end in range(len(data)))


def bit_flips(data: bytes, *, begin: int = 5) -> Iterator[bytes]:
    """The header stays, or the schema would be another."""
    for bit in range(begin * 8, len(data) * 8):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        yield bytes(flipped)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Some bytes replaced, left out or added, behind the header."""
    body = bytearray(data[5:])
    for _ in range(chance.randrange(1, 4)):
        place = chance.randrange(len(body) + 1)
        match chance.randrange(4):
            case 0:
                body[place : place + 1] = bytes(
                    [chance.choice([0, 1, 2, 127, 128, 255, chance.randrange(256)])]
                )
            case 1:
                del body[place : place + chance.randrange(1, 9)]
            case 2:
                body[place:place] = chance.randbytes(chance.randrange(1, 12))
            case 3:
                other = chance.randrange(len(body) + 1)
                body[place:place] = body[other : other + chance.randrange(1, 30)]
    return data[:5] + bytes(body)

"""Records as Debezium's PostgreSQL connector sends them (`cdc-semantics` §12), encoded by fastavro."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa

from cdc_lakehouse.debezium.columns import TableColumns, columns_of
from cdc_lakehouse.debezium.plans import DecodePlans

TOPIC = "shop.public.orders"
KEY_ID, VALUE_ID = 7, 9


def optional(node: Any) -> dict[str, Any]:
    return {"type": ["null", node], "default": None}


def semantic(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "connect.version": 1, "connect.name": name, **more}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return semantic(
        "bytes",
        "org.apache.kafka.connect.data.Decimal",
        scale=scale,
        precision=precision,
        logicalType="decimal",
        **{"connect.parameters": parameters},
    )


def field(name: str, node: Any) -> dict[str, Any]:
    return {"name": name, **(node if isinstance(node, dict) and "default" in node else {"type": node})}


ROW_FIELDS = [
    field("id", "long"),
    field("note", optional("string")),
    field("total", optional(decimal(10, 2))),
    field("placed_on", optional(semantic("int", "io.debezium.time.Date"))),
    field("changed_at", optional(semantic("string", "io.debezium.time.ZonedTimestamp"))),
    field("rank", optional({"type": "int", "connect.type": "int16"})),
    field("photo", optional("bytes")),
    field("tags", optional({"type": "array", "items": ["null", "string"]})),
]
_SNAPSHOT = {
    "type": "string",
    "connect.name": "io.debezium.data.Enum",
    "connect.parameters": {"allowed": "true,first,last,false,incremental"},
    "connect.default": "false",
}
_SOURCE = {
    "type": "record",
    "name": "Source",
    "namespace": "io.debezium.connector.postgresql",
    "fields": [
        *(field(name, "string") for name in ("version", "connector", "name")),
        field("ts_ms", "long"),
        {"name": "snapshot", "type": [_SNAPSHOT, "null"], "default": "false"},
        field("db", "string"),
        field("sequence", optional("string")),
        *(field(name, optional("long")) for name in ("ts_us", "ts_ns")),
        *(field(name, "string") for name in ("schema", "table")),
        *(field(name, optional("long")) for name in ("txId", "lsn", "xmin")),
        *(field(name, optional("string")) for name in ("origin",)),
        field("origin_lsn", optional("long")),
    ],
}
_BLOCK = {
    "type": "record",
    "name": "block",
    "namespace": "event",
    "fields": [field("id", "string"), field("total_order", "long"), field("data_collection_order", "long")],
}


def envelope_schema(row_fields: list[dict[str, Any]], *, topic: str = TOPIC) -> dict[str, Any]:
    """`before` defines the row, `after` refers to it by name."""
    value = {"type": "record", "name": "Value", "fields": row_fields, "connect.name": f"{topic}.Value"}
    return {
        "type": "record",
        "name": "Envelope",
        "namespace": topic,
        "connect.name": f"{topic}.Envelope",
        "fields": [
            field("before", optional(value)),
            field("after", optional("Value")),
            field("source", _SOURCE),
            field("transaction", optional(_BLOCK)),
            field("op", "string"),
            *(field(name, optional("long")) for name in ("ts_ms", "ts_us", "ts_ns")),
        ],
    }


def key_schema(node: Any = "long") -> dict[str, Any]:
    return {"type": "record", "name": "Key", "namespace": TOPIC, "fields": [field("id", node)]}


def source(**changes: Any) -> dict[str, Any]:
    block = {
        "version": "3.7.0.Final",
        "connector": "postgresql",
        "name": "shop",
        "ts_ms": 1_700_000_000_123,
        "snapshot": "false",
        "db": "shop",
        "sequence": '["26002768","26002808"]',
        "ts_us": 1_700_000_000_123_456,
        "ts_ns": 1_700_000_000_123_456_000,
        "schema": "public",
        "table": "orders",
        "txId": 811,
        "lsn": 26002808,
        "xmin": None,
        "origin": None,
        "origin_lsn": None,
    }
    return {**block, **changes}


def event(op: str = "u", *, after: Any = None, before: Any = None, **source_changes: Any) -> dict[str, Any]:
    return {
        "before": before,
        "after": after,
        "source": source(**source_changes),
        "transaction": {"id": "811:26002808", "total_order": 2, "data_collection_order": 1},
        "op": op,
        "ts_ms": 1_700_000_000_500,
        "ts_us": None,
        "ts_ns": None,
    }


def row(**values: Any) -> dict[str, Any]:
    empty = {each["name"]: None for each in ROW_FIELDS}
    return {**empty, "id": 1, **values}


FULL = row(
    note="hällo",
    total=(-12345).to_bytes(3, "big", signed=True),
    placed_on=19_000,
    changed_at="2024-02-29T23:59:59.1234567+02:00",
    rank=-3,
    photo=b"\x00\xff",
    tags=["a", None],
)
"""Something in every column."""


def raw_schema(schema: Any) -> Any:
    """Without logical types, so that fastavro writes plain ints and bytes."""
    if isinstance(schema, list):
        return [raw_schema(each) for each in schema]
    if isinstance(schema, dict):
        return {name: raw_schema(each) for name, each in schema.items() if name != "logicalType"}
    return schema


def payload(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(raw_schema(schema)), value)
    return out.getvalue()


def framed(schema_id: int, schema: Any, value: Any) -> bytes:
    return b"\x00" + schema_id.to_bytes(4, "big") + payload(schema, value)


VALUE_SCHEMA = envelope_schema(ROW_FIELDS)


def key_bytes(number: int = 1) -> bytes:
    return framed(KEY_ID, key_schema(), {"id": number})


def value_bytes(value: Any) -> bytes:
    return framed(VALUE_ID, VALUE_SCHEMA, value)


def columns(schema: Any = VALUE_SCHEMA, key: Any = None) -> TableColumns:
    return columns_of(json.dumps(key or key_schema()), json.dumps(schema), table="orders")


def plans(**changes: Any) -> DecodePlans:
    schemas = {KEY_ID: json.dumps(key_schema()), VALUE_ID: json.dumps(VALUE_SCHEMA)}
    known = {"table": "orders", "columns": columns(), "schemas": schemas, "topic_ids": {TOPIC: "id1"}}
    return DecodePlans(**{**known, **changes})


HEADERS = pa.list_(pa.struct([pa.field("key", pa.string(), nullable=False), ("value", pa.binary())]))


def kafka_batch(*records: tuple[bytes | None, bytes | None]) -> pa.RecordBatch:
    count = len(records)
    return pa.record_batch(
        {
            "key": pa.array([key for key, _ in records], pa.binary()),
            "value": pa.array([value for _, value in records], pa.binary()),
            "topic": pa.array([TOPIC] * count, pa.string()),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(100, 100 + count), pa.int64()),
            "timestamp": pa.array([1_700_000_001_000_000] * count, pa.timestamp("us", tz="UTC")),
            "headers": pa.array([None] * count, HEADERS),
        }
    )

"""The bronze row as the decoder gives it out: everything but `ingested_at` and `attempt`."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.debezium.columns import Column, TableColumns
from cdc_lakehouse.debezium.events import Event, Values
from cdc_lakehouse.debezium.plans import DecodePlans
from cdc_lakehouse.debezium.position import Position, position_of
from cdc_lakehouse.debezium.source import SOURCE_TYPE
from cdc_lakehouse.debezium.unavailable import is_unavailable

POSITION_FIELDS = ("phase", "commit", "streamed", "row", "order_in_tx", "kind")
POSITION_TYPE = pa.struct([(name, pa.int64()) for name in POSITION_FIELDS])
TRANSACTION_TYPE = pa.struct(
    [("id", pa.string()), ("total_order", pa.int64()), ("data_collection_order", pa.int64())]
)
HEADERS_TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
DECODE_ERROR_TYPE = pa.struct([("code", pa.string()), ("detail", pa.string())])


def struct_of(columns: tuple[Column, ...]) -> pa.DataType:
    return pa.struct([(column.name, column.type) for column in columns])


def bronze_schema(columns: TableColumns) -> pa.Schema:
    """What `decode` returns for a table with these columns; every field is nullable."""
    row = struct_of(columns.row)
    return pa.schema(
        [
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("kafka_timestamp", pa.timestamp("us", tz="UTC")),
            ("key_schema_id", pa.int32()),
            ("value_schema_id", pa.int32()),
            ("op", pa.string()),
            ("position", POSITION_TYPE),
            ("key", struct_of(columns.key)),
            ("before", row),
            ("after", row),
            ("unavailable", pa.list_(pa.string())),
            ("source", SOURCE_TYPE),
            ("transaction", TRANSACTION_TYPE),
            ("headers", HEADERS_TYPE),
            ("decode_error", DECODE_ERROR_TYPE),
            ("raw_key", pa.binary()),
            ("raw_value", pa.binary()),
        ]
    )


def bronze_batch(batch: pa.RecordBatch, events: Sequence[Event], plans: DecodePlans) -> pa.RecordBatch:
    """The rows of `events`, which stand in the order of the records of `batch`."""
    schema = bronze_schema(plans.columns)
    after, unavailable = _without_placeholders(
        _rows([event.after for event in events], plans.columns.row), plans.placeholder
    )
    columns = {
        "topic": batch.column("topic"),
        "partition": batch.column("partition"),
        "offset": batch.column("offset"),
        "kafka_timestamp": batch.column("timestamp"),
        "key_schema_id": pa.array([event.schema_ids[0] for event in events], pa.int32()),
        "value_schema_id": pa.array([event.schema_ids[1] for event in events], pa.int32()),
        "op": pa.array([event.op for event in events], pa.string()),
        "position": _struct(_positions(batch, events), POSITION_TYPE),
        "key": _rows([event.key for event in events], plans.columns.key),
        "before": _rows([event.before for event in events], plans.columns.row),
        "after": after,
        "unavailable": unavailable,
        "source": _struct([event.source for event in events], SOURCE_TYPE),
        "transaction": _struct([event.transaction for event in events], TRANSACTION_TYPE),
        "headers": batch.column("headers"),
        "decode_error": _struct([event.fault for event in events], DECODE_ERROR_TYPE),
        **_raw(batch, events, keep_all=plans.keep_raw),
    }
    arrays = [_as(columns[field.name], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _as(column: pa.Array, type_: pa.DataType) -> pa.Array:
    return column if column.type == type_ else column.cast(type_)


def _positions(batch: pa.RecordBatch, events: Sequence[Event]) -> list[Position | None]:
    return [
        position_of(
            event.source,
            op=event.op,
            total_order=event.transaction.total_order if event.transaction else None,
            kafka_offset=offset,
        )
        for event, offset in zip(events, batch.column("offset").to_pylist(), strict=True)
    ]


def _struct(objects: Sequence[Any], type_: pa.StructType) -> pa.Array:
    """Members are the attributes of the same name."""
    children = [
        pa.array([None if each is None else read(each) for each in objects], field.type)
        for field in type_
        for read in (attrgetter(field.name),)
    ]
    return _assembled(children, type_, missing=[each is None for each in objects])


def _rows(rows: Sequence[Values | None], columns: tuple[Column, ...]) -> pa.Array:
    children = [
        pa.array([None if row is None else row[place] for row in rows], column.type)
        for place, column in enumerate(columns)
    ]
    return _assembled(children, struct_of(columns), missing=[row is None for row in rows])


def _assembled(children: list[pa.Array], type_: pa.StructType, *, missing: list[bool]) -> pa.Array:
    return pa.StructArray.from_arrays(children, fields=list(type_), mask=pa.array(missing, pa.bool_()))


def _without_placeholders(after: pa.StructArray, placeholder: str) -> tuple[pa.Array, pa.Array]:
    """Null instead of each placeholder, and per row the names of those columns (`cdc-semantics` §3)."""
    names: dict[int, list[str]] = {}
    children = []
    for field in after.type:
        child = after.field(field.name)
        found = is_unavailable(child, placeholder=placeholder)
        if found.any():
            child = pc.if_else(pa.array(found), pa.scalar(None, field.type), child)
            for row in found.nonzero()[0].tolist():
                names.setdefault(row, []).append(field.name)
        children.append(child)
    unavailable = pa.array([names.get(row) for row in range(len(after))], pa.list_(pa.string()))
    return _assembled(children, after.type, missing=after.is_null().to_pylist()), unavailable


def _raw(batch: pa.RecordBatch, events: Sequence[Event], *, keep_all: bool) -> dict[str, pa.Array]:
    wanted = pa.array([keep_all or event.fault is not None for event in events], pa.bool_())
    nothing = pa.scalar(None, pa.binary())
    return {
        f"raw_{name}": pc.if_else(wanted, _as(batch.column(name), pa.binary()), nothing)
        for name in ("key", "value")
    }

"""The bronze row as the decoder gives it out: everything but `ingested_at` and `attempt`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.avro.faults import RecordFault
from cdc_lakehouse.avro.spread import Spread, spread_out
from cdc_lakehouse.avro.typed.columns import present
from cdc_lakehouse.debezium.change_columns import Decoded
from cdc_lakehouse.debezium.columns import Column, TableColumns
from cdc_lakehouse.debezium.conversions import same_text
from cdc_lakehouse.debezium.events import Event, Values
from cdc_lakehouse.debezium.plans import DecodePlans
from cdc_lakehouse.debezium.position import Position, position_of
from cdc_lakehouse.debezium.positions import position_columns
from cdc_lakehouse.debezium.source import SOURCE_TYPE, TRANSACTION_TYPE
from cdc_lakehouse.debezium.source_columns import struct_under
from cdc_lakehouse.debezium.unavailable import is_unavailable

POSITION_FIELDS = ("phase", "commit", "streamed", "row", "order_in_tx", "kind")
POSITION_TYPE = pa.struct([(name, pa.int64()) for name in POSITION_FIELDS])
HEADERS_TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
DECODE_ERROR_TYPE = pa.struct([("code", pa.string()), ("detail", pa.string())])


def struct_of(columns: tuple[Column, ...]) -> pa.DataType:
    return pa.struct([(column.name, column.type) for column in columns])


def bronze_schema(columns: TableColumns) -> pa.Schema:
    """What `decode` returns for a table with these columns; every field is nullable.

    A table without a key has no column `key`: neither Parquet nor Delta holds a struct of nothing.
    """
    row = struct_of(columns.row)
    key = [("key", struct_of(columns.key))] if columns.key else []
    return pa.schema(
        [
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("topic_id", pa.string()),
            ("kafka_timestamp", pa.timestamp("us", tz="UTC")),
            ("key_schema_id", pa.int32()),
            ("value_schema_id", pa.int32()),
            ("op", pa.string()),
            ("position", POSITION_TYPE),
            *key,
            ("before", row),
            ("after", row),
            ("unavailable", pa.list_(pa.string())),
            ("out_of_range", pa.list_(pa.string())),
            ("source", SOURCE_TYPE),
            ("transaction", TRANSACTION_TYPE),
            ("headers", HEADERS_TYPE),
            ("decode_error", DECODE_ERROR_TYPE),
            ("raw_key", pa.binary()),
            ("raw_value", pa.binary()),
        ]
    )


def side_types(columns: TableColumns) -> tuple[pa.DataType, pa.DataType]:
    """Of the columns of a key and of a value, as they come out of the columnar decoder."""
    row = struct_of(columns.row)
    value = [("op", pa.string()), ("before", row), ("after", row)]
    blocks = [("source", SOURCE_TYPE), ("transaction", TRANSACTION_TYPE)]
    return pa.struct([("key", struct_of(columns.key))]), pa.struct([*value, *blocks])


def bronze_of_events(batch: pa.RecordBatch, events: Sequence[Event], plans: DecodePlans) -> pa.RecordBatch:
    """The rows of `events`, which stand in the order of the records of `batch`."""
    parts = {
        "key_schema_id": pa.array([event.schema_ids[0] for event in events], pa.int32()),
        "value_schema_id": pa.array([event.schema_ids[1] for event in events], pa.int32()),
        "op": pa.array([event.op for event in events], pa.string()),
        "position": _struct(_positions(batch, events), POSITION_TYPE),
        "key": _rows([event.key for event in events], plans.columns.key),
        "before": _rows([event.before for event in events], plans.columns.row),
        "after": _rows([event.after for event in events], plans.columns.row),
        "source": _struct([event.source for event in events], SOURCE_TYPE),
        "transaction": _struct([event.transaction for event in events], TRANSACTION_TYPE),
        "decode_error": _struct([event.fault for event in events], DECODE_ERROR_TYPE),
        "out_of_range": pa.array([event.out_of_range or None for event in events], pa.list_(pa.string())),
    }
    return _bronze(batch, parts, plans)


def bronze_of_columns(
    batch: pa.RecordBatch,
    schema_ids: tuple[pa.Array, pa.Array],
    key: Decoded,
    value: Decoded,
    faults: Mapping[int, Event],
    plans: DecodePlans,
) -> pa.RecordBatch:
    """The rows of a batch that was decoded as columns; `faults` are its bad rows."""
    parts = dict(zip(value.columns.type.names, value.columns.flatten(), strict=True))
    parts["key"] = key.columns.field(0)
    for name, column in parts.items():
        gone = [row for row, event in faults.items() if getattr(event, name) is None]
        parts[name] = null_at(column, gone)
    transaction = parts["transaction"].flatten()[1]
    numbers, known = position_columns(parts["source"], parts["op"], transaction, _offsets(batch))
    validity = None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
    children = [pa.array(column) for column in numbers]
    parts["position"] = pa.Array.from_buffers(POSITION_TYPE, len(batch), [validity], children=children)
    parts["key_schema_id"], parts["value_schema_id"] = schema_ids
    parts["decode_error"] = errors_at({row: event.fault for row, event in faults.items()}, len(batch))
    parts["out_of_range"] = pa.nulls(len(batch), pa.list_(pa.string()))
    return _bronze(batch, parts, plans)


def _bronze(batch: pa.RecordBatch, parts: Mapping[str, pa.Array], plans: DecodePlans) -> pa.RecordBatch:
    after, unavailable = _without_placeholders(parts["after"], plans.placeholders)
    columns = {
        **parts,
        **{name: batch.column(name) for name in ("topic", "partition", "offset")},
        "topic_id": _topic_ids(batch.column("topic"), plans.topic_ids),
        "headers": _null_if_empty(batch.column("headers")),
        "kafka_timestamp": batch.column("timestamp"),
        "after": after,
        "unavailable": unavailable,
        **raw_columns(batch, parts["decode_error"], keep_all=plans.keep_raw),
    }
    schema = bronze_schema(plans.columns)
    arrays = [_as(columns[field.name], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _topic_ids(topics: pa.Array, known: Mapping[str, str]) -> pa.Array:
    """Null for a topic that nobody named, like every row of release 0.1.0."""
    text = same_text(topics)
    if text is not None:
        return pa.repeat(pa.scalar(known.get(text), pa.string()), len(topics))
    places = pc.index_in(topics, pa.array(list(known), pa.string()))
    return pa.array(list(known.values()), pa.string()).take(places)


def _null_if_empty(headers: pa.Array) -> pa.Array:
    """Spark sends an empty list where Kafka has no headers (`bronze.decode_udf`)."""
    if headers.null_count == len(headers) or not len(headers.flatten()):
        return pa.nulls(len(headers), headers.type)
    return pc.if_else(pc.equal(pc.list_value_length(headers), 0), pa.scalar(None, headers.type), headers)


def _offsets(batch: pa.RecordBatch) -> np.ndarray:
    offsets: np.ndarray = batch.column("offset").to_numpy(zero_copy_only=False)
    return offsets


def null_at(column: pa.Array, rows: Sequence[int]) -> pa.Array:
    if not rows:
        return column
    there = present(column)
    there[rows] = False
    validity = pa.py_buffer(np.packbits(there, bitorder="little"))
    if not pa.types.is_struct(column.type):
        return pc.if_else(pa.array(there), column, pa.scalar(None, column.type))
    children = [column.field(place) for place in range(column.type.num_fields)]
    return pa.Array.from_buffers(column.type, len(column), [validity], children=children)


def errors_at(faults: Mapping[int, RecordFault | None], count: int) -> pa.Array:
    if not faults:
        return pa.nulls(count, DECODE_ERROR_TYPE)
    rows = sorted(faults)
    found = _struct([faults[row] for row in rows], DECODE_ERROR_TYPE)
    return spread_out(found, Spread.at(rows, count))


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


def _without_placeholders(after: pa.StructArray, placeholders: Sequence[str]) -> tuple[pa.Array, pa.Array]:
    """Null instead of each placeholder, and per row the names of those columns (`cdc-semantics` §3)."""
    names: dict[int, list[str]] = {}
    children = []
    for field, child in zip(after.type, after.flatten(), strict=True):
        found = is_unavailable(child, placeholders=placeholders)
        if found.any():
            names_of = found.nonzero()[0].tolist()
            children.append(pc.if_else(pa.array(found), pa.scalar(None, field.type), child))
            for row in names_of:
                names.setdefault(row, []).append(field.name)
        else:
            children.append(child)
    type_ = pa.list_(pa.string())
    if not names:
        return after, pa.nulls(len(after), type_)
    rows = sorted(names)
    unavailable = spread_out(pa.array([names[row] for row in rows], type_), Spread.at(rows, len(after)))
    return struct_under(after, after.type, children), unavailable


def raw_columns(batch: pa.RecordBatch, errors: pa.Array, *, keep_all: bool) -> dict[str, pa.Array]:
    """Bytes of the records with an error, or of all."""
    found = {}
    for name in ("key", "value"):
        column = _as(batch.column(name), pa.binary())
        if errors.null_count == len(errors) and not keep_all:
            column = pa.nulls(len(errors), pa.binary())
        elif not keep_all:
            bad = Spread(present(errors))
            column = spread_out(column.take(pa.array(bad.rows)), bad)
        found[f"raw_{name}"] = column
    return found

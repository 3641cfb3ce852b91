"""The rows of a PostgreSQL table as Arrow, in the types that silver gives them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import time
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql

from local_stack.errors import StackError
from local_stack.shop import SIGNAL_TABLE

_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> %s ORDER BY tablename"
_COLUMNS = """
SELECT a.attname, t.typname, a.atttypmod FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_KEY = """
SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
WHERE i.indrelid = %s::regclass AND i.indisprimary ORDER BY array_position(i.indkey::int2[], a.attnum)
"""
_TYPES = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "text": pa.string(),
    "varchar": pa.string(),
    "bpchar": pa.string(),
    "uuid": pa.string(),
    "json": pa.string(),
    "jsonb": pa.string(),
    "bytea": pa.binary(),
    "date": pa.date32(),
    "time": pa.int64(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
}
_AS_TEXT = frozenset({"uuid", "json", "jsonb"})
_JSON = frozenset({"json", "jsonb"})


class UnknownColumnTypeError(StackError):
    def __init__(self, table: str, column: str, type_: str) -> None:
        super().__init__(f"the comparison does not know the type {type_} of {table}.{column}")


@dataclass(frozen=True, slots=True)
class SourceTable:
    key: tuple[str, ...]
    json_columns: tuple[str, ...]
    rows: pa.Table


def source_tables(connection: psycopg.Connection[Any]) -> list[str]:
    """All that the connector captures, those included that somebody created a moment ago."""
    return [str(name) for (name,) in connection.execute(_TABLES, (SIGNAL_TABLE,))]


def read_source(connection: psycopg.Connection[Any], table: str) -> SourceTable:
    """All rows, as the connection's transaction sees them."""
    columns = connection.execute(_COLUMNS, (table,)).fetchall()
    key = tuple(str(row[0]) for row in connection.execute(_KEY, (table,)))
    types = [_arrow_type(table, name, typname, modifier) for name, typname, modifier in columns]
    selected = sql.SQL(", ").join(_selected(name, typname) for name, typname, _ in columns)
    query = sql.SQL("SELECT {} FROM {}").format(selected, sql.Identifier(table))
    rows = connection.execute(query).fetchall()
    by_column = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    arrays = [_array(values, type_) for values, type_ in zip(by_column, types, strict=True)]
    names = [str(name) for name, _, _ in columns]
    json_columns = tuple(str(name) for name, typname, _ in columns if typname in _JSON)
    return SourceTable(key, json_columns, pa.table(arrays, names=names))


def _selected(name: str, typname: str) -> sql.Composable:
    column = sql.Identifier(name)
    return sql.SQL("{}::text").format(column) if typname in _AS_TEXT else column


def _arrow_type(table: str, name: str, typname: str, modifier: int) -> pa.DataType:
    if typname == "numeric" and modifier >= 0:
        return pa.decimal128((modifier - 4) >> 16 & 0xFFFF, (modifier - 4) & 0x7FF)
    if typname not in _TYPES:
        raise UnknownColumnTypeError(table, name, typname)
    return _TYPES[typname]


def _array(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    return pa.array([_as_micros(v) if isinstance(v, time) else v for v in values], type=type_)


def _as_micros(value: time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond

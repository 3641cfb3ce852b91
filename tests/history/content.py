"""What PostgreSQL holds at a quiet point, in its own words."""

from __future__ import annotations

import json
import lzma
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import IsolationLevel

from history.shapes import Column, shape_of  # type: ignore[import-not-found]
from history.tables import SCHEMA, Table  # type: ignore[import-not-found]

_NOW = "SELECT pg_current_wal_insert_lsn()::text, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
Texts = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Content:
    """All rows of one table, in the order of `columns`."""

    table: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Texts, ...]


@dataclass(frozen=True, slots=True)
class QuietPoint:
    """The whole source at a moment at which nobody wrote."""

    number: int
    lsn: str
    """Every change below it is in `contents`, and none above it."""
    moment: int
    """The same by the source's clock, in microseconds since 1970 UTC."""
    contents: tuple[Content, ...]


def quiet_point(connection: psycopg.Connection[Any], tables: tuple[Table, ...], *, number: int) -> QuietPoint:
    """In one snapshot."""
    connection.isolation_level = IsolationLevel.REPEATABLE_READ
    with connection.transaction():
        contents = tuple(_content(connection, table) for table in tables)
        (lsn, moment) = connection.execute(_NOW).fetchone() or ("", 0)
    return QuietPoint(number, str(lsn), int(moment), contents)


def _content(connection: psycopg.Connection[Any], table: Table) -> Content:
    columns = shape_of(connection, table).columns
    texts = ", ".join(f"{column.name}::text" for column in columns)
    rows = connection.execute(f"SELECT {texts} FROM {SCHEMA}.{table.name}".encode()).fetchall()
    return Content(table.name, table.identity, columns, tuple(rows))


def keep(folder: Path, point: QuietPoint) -> None:
    """For whoever asks later what the source was at that moment."""
    folder.mkdir(parents=True, exist_ok=True)
    document = json.dumps(asdict(point), ensure_ascii=False)
    (folder / f"{point.number:04}.json.xz").write_bytes(lzma.compress(document.encode(), preset=0))


def kept(folder: Path, number: int) -> QuietPoint:
    """The inverse of `keep`."""
    found = json.loads(lzma.decompress((folder / f"{number:04}.json.xz").read_bytes()))
    contents = tuple(_content_of(each) for each in found["contents"])
    return QuietPoint(found["number"], found["lsn"], found["moment"], contents)


def _content_of(document: dict[str, Any]) -> Content:
    return Content(
        table=document["table"],
        key=tuple(document["key"]),
        columns=tuple(Column(**column) for column in document["columns"]),
        rows=tuple(tuple(row) for row in document["rows"]),
    )

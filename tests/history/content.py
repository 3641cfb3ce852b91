"""What PostgreSQL holds at a quiet point, in its own words."""

from __future__ import annotations

import json
import lzma
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import IsolationLevel

from history.shapes import Column, shape_of
from history.tables import SCHEMA, Table

Texts = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Content:
    """All rows of one table, in the order of `columns`."""

    table: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Texts, ...]


def contents_of(connection: psycopg.Connection[Any], tables: tuple[Table, ...]) -> list[Content]:
    """In one snapshot."""
    connection.isolation_level = IsolationLevel.REPEATABLE_READ
    with connection.transaction():
        return [_content(connection, table) for table in tables]


def _content(connection: psycopg.Connection[Any], table: Table) -> Content:
    columns = shape_of(connection, table).columns
    texts = ", ".join(f"{column.name}::text" for column in columns)
    rows = connection.execute(f"SELECT {texts} FROM {SCHEMA}.{table.name}".encode()).fetchall()
    return Content(table.name, table.key, columns, tuple(rows))


def keep(path: Path, contents: list[Content]) -> None:
    """For whoever asks later what the source was at that moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = json.dumps([asdict(content) for content in contents], ensure_ascii=False)
    path.write_bytes(lzma.compress(document.encode(), preset=0))


def kept(path: Path) -> list[Content]:
    """The inverse of `keep`."""
    found = json.loads(lzma.decompress(path.read_bytes()))
    return [
        Content(
            table=each["table"],
            key=tuple(each["key"]),
            columns=tuple(Column(**column) for column in each["columns"]),
            rows=tuple(tuple(row) for row in each["rows"]),
        )
        for each in found
    ]

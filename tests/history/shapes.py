"""What a table looks like to a session at this moment: its columns, types and storage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

from history.tables import BORN, SCHEMA, Table  # type: ignore[import-not-found]

_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attstorage = 'e', a.attnotnull,
       pg_get_expr(d.adbin, d.adrelid)
  FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
 WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
STAMP = "stamp"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    sql: str
    """Its type in PostgreSQL's words."""
    external: bool = False
    """Whether its large values lie outside of the row."""
    required: bool = False
    default: str | None = None
    """As a value, not as an expression."""

    @property
    def is_added(self) -> bool:
        """Made by a step, and a step may take it away again."""
        return self.name.startswith("x")


@dataclass(frozen=True, slots=True)
class Shape:
    table: Table
    columns: tuple[Column, ...]

    @property
    def name(self) -> str:
        return f"{SCHEMA}.{self.table.name}"

    @property
    def key(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column.name in self.table.key)

    @property
    def rest(self) -> tuple[Column, ...]:
        """What a statement sets; the stamp and the number of a birth set themselves."""
        return tuple(c for c in self.columns if c.name not in (*self.table.key, STAMP, BORN))


def shape_of(connection: psycopg.Connection[Any], table: Table) -> Shape:
    """As the connection's transaction sees it, with what it has altered itself."""
    rows = connection.execute(_COLUMNS, (f"{SCHEMA}.{table.name}",)).fetchall()
    columns = tuple(Column(n, s, e, required, _plain(default)) for n, s, e, required, default in rows)
    return Shape(table, columns)


def _plain(default: str | None) -> str | None:
    """Of the literals that steps use: `7`, `1.50`, `'text'::text`."""
    if default is None:
        return None
    return default.partition("::")[0].strip("'()")

"""One moment of the source database, read only: its tables, their columns and rows.

Values come as PostgreSQL's own text, by COPY: no adapter of a client stands between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import IsolationLevel, sql

from cdc_lakehouse.database.access import Database
from cdc_lakehouse.database.positions import LogPosition
from cdc_lakehouse.errors import NotSupportedYetError
from cdc_lakehouse.verification.columns import SourceColumn, same_name

ROWS_AT_ONCE = 10_000
_SETTINGS = {
    "statement_timeout": "30min",
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "30min",
    # Rows that a policy hides would look like rows that are missing: PostgreSQL refuses instead.
    "row_security": "off",
    "search_path": "",
    # One text for one value, whatever the database's own settings are.
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "lc_monetary": "C",
}
_RELATIONS = """
SELECT c.oid, n.nspname, c.relname, c.relreplident::text = 'f' FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p')
"""
_COLUMNS = """
SELECT a.attname, CASE b.typtype WHEN 'e' THEN 'enum' ELSE b.typname END, a.attgenerated <> '',
       b.typname = 'numeric' AND a.atttypmod = -1
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_type b ON b.oid = CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid END
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_LONG_NUMBER = 1_500
"""Bytes; PostgreSQL moves values out of the row from about 2,000 bytes of a row on."""


@dataclass(frozen=True, slots=True)
class Relation:
    oid: int
    schema: str
    name: str
    sends_all: bool
    """REPLICA IDENTITY FULL: an update sends what it leaves alone too."""

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def quoted(self) -> sql.Composable:
        return sql.Identifier(self.schema, self.name)


@contextmanager
def snapshot_of(database: Database) -> Iterator[SourceSnapshot]:
    """Everything that is read inside belongs to one moment."""
    with database.connected() as connection:
        connection.isolation_level = IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        with connection.transaction():
            for name, value in _SETTINGS.items():
                # Of this transaction only: behind a pool the next one may be somebody else's.
                connection.execute("SELECT set_config(%s, %s, true)", (name, value))
            yield SourceSnapshot(connection)


class SourceSnapshot:
    """One moment of the source. `mark` is behind every transaction that it shows."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        if self._value("SELECT pg_is_in_recovery()"):
            raise NotSupportedYetError(feature="a source connection that leads to a standby")
        # Where the log is written to, not how far it is on disk: a commit can be seen before it is there.
        self.mark = LogPosition.from_text(str(self._value("SELECT pg_current_wal_insert_lsn()::text")))

    def relation(self, schema: str, name: str) -> Relation | None:
        """The table whose names became these in a topic."""
        found = (Relation(*row) for row in self._connection.execute(_RELATIONS))
        alike = [each for each in found if same_name(schema, each.schema) and same_name(name, each.name)]
        exact = [each for each in alike if (each.schema, each.name) == (schema, name)]
        return next(iter([*exact, *alike]), None)

    def columns(self, relation: Relation) -> list[SourceColumn]:
        rows = self._connection.execute(_COLUMNS, (relation.oid,)).fetchall()
        return [
            SourceColumn(
                name=name,
                type=type_,
                generated=generated,
                stored_away=bare and not relation.sends_all and self._is_long(relation, name),
            )
            for name, type_, generated, bare in rows
        ]

    def rows(self, relation: Relation, columns: Sequence[str]) -> Iterator[list[pa.StringArray]]:
        """Texts of these columns and, behind them, which transaction wrote the row; as often as asked."""
        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        query = sql.SQL("COPY (SELECT {}, xmin FROM {}) TO STDOUT").format(names, relation.quoted)
        with self._connection.cursor() as cursor, cursor.copy(query) as copy:
            told = copy.rows()
            while rows := list(islice(told, ROWS_AT_ONCE)):
                yield [pa.array(texts, pa.string()) for texts in zip(*rows, strict=True)]

    def count_rows(self, relation: Relation, condition: str) -> int:
        """Return how many rows meet an SQL condition. Raise `ValueError` for one that the source refuses."""
        # A parameter makes it one statement, whatever the condition holds.
        text = condition.replace("%", "%%")
        query = f"SELECT count(*) FROM {relation.quoted.as_string(self._connection)} WHERE ({text}) AND %s"  # noqa: S608
        try:
            row = self._connection.execute(query.encode(), (True,)).fetchone()
        except (psycopg.ProgrammingError, psycopg.DataError, psycopg.NotSupportedError) as exc:
            # Its message may quote a value of a row.
            raise ValueError(f"{type(exc).__name__}, SQLSTATE {exc.sqlstate}") from None
        return 0 if row is None else int(row[0])

    def _is_long(self, relation: Relation, column: str) -> bool:
        query = sql.SQL("SELECT bool_or(pg_column_size({}) > {}) FROM {}").format(
            sql.Identifier(column), sql.Literal(_LONG_NUMBER), relation.quoted
        )
        row = self._connection.execute(query).fetchone()
        return row is not None and row[0] is True

    def _value(self, query: str) -> object:
        row = self._connection.execute(query.encode()).fetchone()
        return None if row is None else row[0]

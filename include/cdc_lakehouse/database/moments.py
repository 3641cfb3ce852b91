"""A moment of a source: what time it is there, and where its log stands.

It costs a run a connection and three small queries. A source that does not answer may cost it some seconds.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

import psycopg

from cdc_lakehouse.database.access import Database
from cdc_lakehouse.database.positions import LogPosition, Moment
from cdc_lakehouse.errors import SourceUnavailableError

_SECONDS_TO_CONNECT = 3
_SECONDS_TO_ANSWER = "5s"
# Debezium puts an underscore for what a topic's name cannot hold.
_RELATIONS = """
WITH named AS (
    SELECT regexp_replace(n.nspname || '.' || c.relname, '[^a-zA-Z0-9._-]', '_', 'g') AS name
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p')
)
SELECT DISTINCT name FROM named WHERE name = ANY(%s)
"""


def moment_of(database: Database, *, relations: Collection[str]) -> tuple[Moment, frozenset[str]]:
    """With those of `relations`, `schema.table` as topics name them, that the source has.

    Raises `SourceUnavailableError`, or what a person must grant.
    """
    try:
        with database.connected(patience=_SECONDS_TO_CONNECT) as connection:
            connection.execute("SELECT set_config('statement_timeout', %s, true)", (_SECONDS_TO_ANSWER,))
            # In this order: a position of before the clock was read would leave out commits of between.
            at: datetime = _value(connection, "SELECT clock_timestamp()")
            position = LogPosition.from_text(_value(connection, "SELECT pg_current_wal_insert_lsn()::text"))
            found = connection.execute(_RELATIONS, (sorted(relations),)).fetchall()
    except psycopg.Error as exc:
        address = database.settings.address
        raise SourceUnavailableError(address=address, reason=type(exc).__name__) from exc
    return Moment(at.astimezone(UTC), position), frozenset(name for (name,) in found)


def _value(connection: psycopg.Connection[Any], query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    if row is None:
        raise psycopg.DataError(f"no answer to {query}")
    return row[0]

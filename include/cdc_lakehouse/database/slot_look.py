"""One look at a source for how far its connector has come: what time it is there, and what its slots say.

It costs a run a connection and four small queries. A source that does not answer may cost it some seconds.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC
from typing import Any

import psycopg

from cdc_lakehouse.database.access import Database
from cdc_lakehouse.database.positions import LogPosition
from cdc_lakehouse.database.slots import SlotLook
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


def look_at_slots(database: Database, *, relations: Collection[str]) -> SlotLook:
    """`relations` are `schema.table`, as topics name them. Raises `SourceUnavailableError`, or what a person
    must grant."""
    try:
        with database.connected(patience=_SECONDS_TO_CONNECT) as connection:
            return _looked(database, connection, relations)
    except psycopg.Error as exc:
        address = database.settings.address
        raise SourceUnavailableError(address=address, reason=type(exc).__name__) from exc


def _looked(database: Database, connection: psycopg.Connection[Any], relations: Collection[str]) -> SlotLook:
    connection.execute("SELECT set_config('statement_timeout', %s, true)", (_SECONDS_TO_ANSWER,))
    # In this order: a position that is asked for before the clock would leave out commits of between.
    (at,) = _row(connection, "SELECT clock_timestamp()")
    (position,) = _row(connection, "SELECT pg_current_wal_insert_lsn()::text")
    slots = database.slots_seen_by(connection)
    found = connection.execute(_RELATIONS, (sorted(relations),)).fetchall()
    return SlotLook(
        at=at.astimezone(UTC),
        position=LogPosition.from_text(position),
        slots=slots,
        relations=frozenset(name for (name,) in found),
    )


def _row(connection: psycopg.Connection[Any], query: str) -> tuple[Any, ...]:
    row = connection.execute(query.encode()).fetchone()
    if row is None:
        raise psycopg.DataError(f"no answer to {query}")
    return tuple(row)

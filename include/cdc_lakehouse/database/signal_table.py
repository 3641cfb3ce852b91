"""The table of signals: where a connector is asked for a snapshot by an INSERT."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from psycopg import sql

from cdc_lakehouse.database.access import Database
from cdc_lakehouse.database.positions import LogPosition
from cdc_lakehouse.errors import SourceUnavailableError

_RIGHTS = """
SELECT quote_ident(current_user), quote_ident(n.nspname),
       quote_ident(n.nspname) || '.' || quote_ident(c.relname),
       has_schema_privilege(n.oid, 'USAGE'), has_table_privilege(c.oid, 'INSERT')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND n.nspname = %s AND c.relname = %s
"""
_INSERT = "INSERT INTO {} VALUES (%s, 'execute-snapshot', %s) ON CONFLICT DO NOTHING"
_POSITION = "SELECT pg_current_wal_insert_lsn()::text"


@dataclass(frozen=True, slots=True)
class SignalTable:
    database: Database
    name: str
    """`schema.table`"""

    def missing_rights(self) -> str | None:
        """Return the statements that somebody has to execute before signals can be sent; None if none."""
        with self.database.connected() as connection:
            row = connection.execute(_RIGHTS, self._names).fetchone()
        if row is None:
            return (
                f"CREATE TABLE {self.name} (id varchar(42) PRIMARY KEY, type varchar(32), data "
                f"varchar(2048)); and name it as the connector's signal.data.collection"
            )
        login, schema, table, may_use, may_insert = row
        grants = [] if may_use else [f"GRANT USAGE ON SCHEMA {schema} TO {login};"]
        grants += [] if may_insert else [f"GRANT INSERT ON {table} TO {login};"]
        return " ".join(grants) or None

    def send(self, signal_id: str, data: str) -> LogPosition:
        """Ask for a snapshot, and return a place in the log behind the signal.

        A second call with the same id sends nothing: the place is a later one.
        """
        try:
            with self.database.connected() as connection:
                insert = sql.SQL(_INSERT).format(sql.Identifier(*self._names))
                connection.execute(insert, (signal_id, data))
                connection.commit()
                row = connection.execute(_POSITION).fetchone()
        except psycopg.DatabaseError as exc:
            address = self.database.settings.address
            reason = f"the signal was not sent: {type(exc).__name__}"
            raise SourceUnavailableError(address=address, reason=reason) from exc
        if row is None:
            raise RuntimeError("the source told no position of its log")
        return LogPosition.from_text(row[0])

    @property
    def _names(self) -> tuple[str, str]:
        schema, _, table = self.name.rpartition(".")
        return schema or "public", table

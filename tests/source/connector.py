"""As much of a connector as the source sees of one: a slot that is read, and positions that are confirmed."""

from __future__ import annotations

import struct
import time
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.pq import ExecStatus, PGconn
from psycopg.pq.abc import PGconn as Reader

SLOT = "shop"
SECONDS = 30


class FakeConnector:
    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        """`connection` is a superuser's, which commits by itself."""
        self._connection = connection
        self._reader: Reader | None = None
        connection.execute("DROP PUBLICATION IF EXISTS shop")
        connection.execute("CREATE PUBLICATION shop FOR ALL TABLES")
        connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (SLOT,))
        self.start()

    def start(self) -> None:
        known = self._connection.info
        told = {**known.get_parameters(), "password": known.password, "replication": "database"}
        reader = PGconn.connect(make_conninfo("", **told).encode())
        options = "(proto_version '1', publication_names 'shop')"
        answer = reader.exec_(f"START_REPLICATION SLOT {SLOT} LOGICAL 0/0 {options}".encode())
        assert answer.status == ExecStatus.COPY_BOTH, reader.error_message
        self._reader = reader

    def stop(self) -> None:
        """Its slot stays, and nobody reads it."""
        if self._reader is not None:
            self._reader.finish()
            self._reader = None
        self._wait("NOT bool_or(active)")

    def confirm(self) -> None:
        """All up to now."""
        assert self._reader is not None
        # Something behind it, as a heartbeat is: its commit writes the log out.
        self._connection.execute("SELECT pg_logical_emit_message(true, 'heartbeat', '')")
        row = self._connection.execute("SELECT pg_current_wal_flush_lsn() - '0/0'::pg_lsn").fetchone()
        assert row is not None
        position = int(row[0])
        self._reader.put_copy_data(struct.pack(">cqqqqb", b"r", position, position, position, 0, 0))
        while self._reader.flush():
            pass
        self._wait(f"bool_and(confirmed_flush_lsn - '0/0'::pg_lsn >= {position})")

    def end(self) -> None:
        self.stop()
        self._connection.execute("SELECT pg_drop_replication_slot(%s)", (SLOT,))

    def _wait(self, condition: str) -> None:
        until = time.monotonic() + SECONDS
        query = f"SELECT {condition} FROM pg_replication_slots WHERE slot_name = '{SLOT}'"
        while self._connection.execute(query.encode()).fetchone() != (True,):
            assert time.monotonic() < until, f"not so: {condition}"

"""A database, a connector and a pipeline of one history, on a stack that others may use too."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from cdc_lakehouse.lake.names import Lake
from history.tables import FIRST, SCHEMA, SIGNALS, Table, creation  # type: ignore[import-not-found]
from local_stack import RunningStack
from local_stack.connect import Connect
from local_stack.connector import connector_settings

_PATIENCE = 120.0
_LAST_LINES = 60
_YAML = """\
version: 1
name: {name}
owner: tests
schedule: "0 * * * *"
start_date: 2026-01-01
defaults: {{out_of_range: as_null, deletes_limit: {{share: 1}}}} # histories truncate whole tables
tables:
"""


class ConnectorStuckError(RuntimeError):
    """The connector does not stream, or does not come to where the database is."""


@dataclass(frozen=True, slots=True)
class World:
    """`name` is that of the database, the connector, its slot, its topics and the pipeline."""

    name: str
    stack: RunningStack
    pipelines: Path
    tables: tuple[Table, ...]

    @property
    def lake(self) -> Lake:
        return Lake(root=self.stack.lake_root(), pipeline=self.name)

    def topic(self, table: Table) -> str:
        return f"{self.name}.{SCHEMA}.{table.name}"

    def connect(self) -> psycopg.Connection[Any]:
        connection = self.stack.postgres.connect(self.name)
        connection.autocommit = True
        connection.execute("SET bytea_output = hex")
        return connection

    def wait_until_captured(self, *, seconds: float = _PATIENCE) -> None:
        """Until Kafka has acknowledged every change that is committed now; open transactions do not count.

        The slot tells what was acknowledged last (decision 0033). On one broker that is all before it, too.
        """
        # An idle stream confirms nothing. In a transaction: behind a restart the connector looks for the next
        # commit, and drops all it meets before it.
        wake = "SELECT pg_logical_emit_message(true, 'heartbeat', 'caught up?')"
        with self.connect() as connection:
            connection.execute(wake)  # behind the place at which a new slot begins
            (wanted,) = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone() or ("",)
            query = "SELECT confirmed_flush_lsn >= %s::pg_lsn FROM pg_replication_slots WHERE slot_name = %s"

            def confirmed() -> bool:
                connection.execute(wake)
                return connection.execute(query, (wanted, self.name)).fetchone() == (True,)

            self._wait(confirmed, seconds=seconds, pause=0.1)

    def restart_task(self) -> None:
        """Of the connector; by REST, whether it failed or not."""
        with Connect(self.stack.site).client() as client:
            query = {"includeTasks": "true", "onlyFailed": "false"}
            client.post(f"/connectors/{self.name}/restart", params=query)

    def lose_slot(self) -> None:
        """Stop the connector, and take its slot and its offsets away, as if both had been lost."""
        with Connect(self.stack.site).client() as client:
            client.put(f"/connectors/{self.name}/stop").raise_for_status()
            self._wait(lambda: self._has_stopped(client), seconds=_PATIENCE)
            client.delete(f"/connectors/{self.name}/offsets").raise_for_status()
        left = "SELECT count(*) FROM pg_replication_slots WHERE slot_name = %s"
        drop = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s"
        with self.connect() as connection:

            def is_gone() -> bool:
                connection.execute(f"{drop} AND NOT active".encode(), (self.name,))
                return connection.execute(left, (self.name,)).fetchone() == (0,)

            self._wait(is_gone, seconds=_PATIENCE)

    def begin_slot(self) -> None:
        """Let the connector go on: it makes a slot, and reads all tables."""
        with Connect(self.stack.site).client() as client:
            client.put(f"/connectors/{self.name}/resume").raise_for_status()
        self.wait_until_streaming()

    def _has_stopped(self, client: httpx.Client) -> bool:
        status = client.get(f"/connectors/{self.name}/status").json()
        return bool(status["connector"]["state"] == "STOPPED" and not status["tasks"])

    def wait_until_streaming(self) -> None:
        query = (
            "SELECT active AND confirmed_flush_lsn IS NOT NULL FROM pg_replication_slots WHERE slot_name = %s"
        )
        with self.connect() as connection:
            self._wait(
                lambda: connection.execute(query, (self.name,)).fetchone() == (True,), seconds=_PATIENCE
            )

    def _wait(self, done: Callable[[], bool], *, seconds: float, pause: float = 0.2) -> None:
        """A failed connector is started again, as a person would, until there is no patience left."""
        began = time.monotonic()
        nudged = began
        while not done():
            now = time.monotonic()
            if now - began > seconds:
                raise ConnectorStuckError(f"{self._state()[:3000]}\n{self._slot()}\n{self._said()}")
            if now - nudged > 5:
                nudged = now
                if "FAILED" in self._state():
                    self.restart_task()
            time.sleep(pause)

    def _state(self) -> str:
        try:
            with Connect(self.stack.site).client() as client:
                return client.get(f"/connectors/{self.name}/status").text
        except httpx.HTTPError as exc:
            return f"Connect does not answer: {exc}"

    def _slot(self) -> str:
        query = """SELECT s.*, pg_current_wal_insert_lsn() AS insert, (
            SELECT jsonb_agg(to_jsonb(a)) FROM pg_stat_activity a WHERE a.backend_xid IS NOT NULL) AS open
            FROM pg_replication_slots s WHERE slot_name = %s"""
        with self.connect() as connection, connection.cursor(row_factory=dict_row) as cursor:
            return str(cursor.execute(query, (self.name,)).fetchone())

    def _said(self) -> str:
        """The last that Connect has written, but for requests like ours."""
        log = self.stack.site.layout.log("connect").read_text(encoding="utf-8", errors="replace")
        lines = [line[:400] for line in log.splitlines() if "RestServer: " not in line]
        return "\n".join(lines[-_LAST_LINES:])


@contextmanager
def world(
    stack: RunningStack,
    name: str,
    *,
    folder: Path,
    tables: Sequence[Table],
    fill: Callable[[World], None],
) -> Iterator[World]:
    """Up for the length of the block; behind it the stack has no connector and no slot of it.

    `fill` gives every table rows before the connector starts, and all of them are in Kafka when the block
    begins: a topic is made for its first record, and a job is right to miss one that is not there.
    """
    made = World(name, stack, folder / "pipelines", tuple(tables))
    _create_database(made)
    fill(made)
    _write_pipeline(made)
    _start_connector(made)
    try:
        made.wait_until_streaming()
        made.wait_until_captured()
        yield made
    finally:
        _remove(made)


def _create_database(made: World) -> None:
    database = sql.Identifier(made.name)
    with made.stack.postgres.connect("postgres") as connection:
        connection.autocommit = True
        connection.execute(sql.SQL("CREATE DATABASE {}").format(database))
        connection.execute("ALTER SYSTEM SET wal_keep_size = '1GB'")  # a find is explained from it
        connection.execute("SELECT pg_reload_conf()")
    with made.connect() as connection:
        for statement in (*FIRST, *(each for table in made.tables for each in creation(table))):
            connection.execute(statement.encode())
        for grant in (
            f"GRANT USAGE ON SCHEMA {SCHEMA} TO debezium",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA {SCHEMA} TO debezium",
            f"GRANT INSERT, DELETE ON {SCHEMA}.{SIGNALS} TO debezium",
        ):
            connection.execute(grant.encode())
        connection.execute(
            sql.SQL("CREATE PUBLICATION {} FOR TABLES IN SCHEMA {}").format(database, sql.Identifier(SCHEMA))
        )


def _write_pipeline(made: World) -> None:
    made.pipelines.mkdir(parents=True, exist_ok=True)
    lines = [
        {
            "name": table.name,
            "topics": [made.topic(table)],
            **({"history": True} if table.historic else {}),
            **({"key": list(table.own_key)} if table.own_key else {}),
        }
        for table in made.tables
    ]
    tables = "".join(f"  - {json.dumps(line)}\n" for line in lines)
    (made.pipelines / f"{made.name}.yaml").write_text(_YAML.format(name=made.name) + tables)


def _settings(made: World) -> dict[str, str]:
    spread = "|".join(table.name for table in made.tables if table.partitions > 1)
    return {
        **connector_settings(made.stack.site),
        "topic.prefix": made.name,
        "database.dbname": made.name,
        "slot.name": made.name,
        "publication.name": made.name,
        "schema.include.list": SCHEMA,
        "signal.data.collection": f"{SCHEMA}.{SIGNALS}",
        "incremental.snapshot.chunk.size": "8",
        "snapshot.mode": "initial",
        "topic.creation.groups": "spread",
        "topic.creation.spread.include": f"{made.name}[.]{SCHEMA}[.]({spread})",
        "topic.creation.spread.partitions": "3",
        "topic.creation.spread.replication.factor": "1",
    }


def _start_connector(made: World) -> None:
    with Connect(made.stack.site).client() as client:
        client.put(f"/connectors/{made.name}/config", json=_settings(made)).raise_for_status()


def _remove(made: World) -> None:
    made.stack.start("connect")
    with Connect(made.stack.site).client() as client:
        client.delete(f"/connectors/{made.name}")
    ours = "FROM pg_replication_slots WHERE slot_name = %s"
    drop = f"SELECT pg_drop_replication_slot(slot_name) {ours} AND NOT active"
    left = f"SELECT count(*) {ours}"
    with made.stack.postgres.connect("postgres") as connection:
        connection.autocommit = True
        deadline = time.monotonic() + 30
        while connection.execute(left, (made.name,)).fetchone() != (0,) and time.monotonic() < deadline:
            connection.execute(drop, (made.name,))
            time.sleep(0.2)

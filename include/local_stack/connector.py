"""The Debezium connector of the demo's database, and how to know that it has seen everything."""

from __future__ import annotations

import time
from typing import Any

import httpx
import psycopg
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from local_stack.component import Component, Site
from local_stack.connect import AVRO_CONVERTER, PASSWORD_DATABASE, PASSWORD_REGISTRY, Connect
from local_stack.errors import ComponentFailedError, NotCapturedError
from local_stack.ports import LOOPBACK
from local_stack.postgres import SHOP, VERIFIER, Postgres
from local_stack.process import ProcessRecord
from local_stack.registry import USER as REGISTRY_USER
from local_stack.registry import Registry
from local_stack.shop import (
    SIGNAL_TABLE,
    create_tables,
    let_connector_read,
    let_verifier_send_signals,
    publish_all_tables,
)

PREFIX = "shop"
SLOT = "shop"
CONNECTOR_ROLE = "debezium"
_HEARTBEAT = "heartbeat"
_SLOT_IS_ACTIVE = "SELECT bool_or(active) FROM pg_replication_slots WHERE slot_name = %s"
_CONFIRMED = (
    "SELECT confirmed_flush_lsn, confirmed_flush_lsn >= %s::pg_lsn "
    "FROM pg_replication_slots WHERE slot_name = %s"
)


class Connector(Component):
    name = "connector"
    needs = ("postgres", "registry", "connect")
    is_process = False
    patience = 60.0

    def is_healthy(self, process: ProcessRecord) -> bool:
        """It lives in Connect's process."""
        return process.is_alive and self.state() == "RUNNING"

    def settle(self) -> None:
        """Create the tables and the connector, or bring an existing one up to date and back to work."""
        with Postgres(self.site).connect(SHOP, user="shop") as connection:
            create_tables(connection)
        with Postgres(self.site).connect(SHOP) as connection:
            publish_all_tables(connection, PREFIX)
            let_connector_read(connection, CONNECTOR_ROLE)
            let_verifier_send_signals(connection, VERIFIER)
        self.configure(connector_settings(self.site))
        deadline = time.monotonic() + self.patience
        while not (self.state() == "RUNNING" and self._slot_is_active()):
            if self.state() == "FAILED":
                self.restart()
            if time.monotonic() > deadline:
                raise ComponentFailedError(self.name, self._failure(), self.site.layout.log("connect"))
            time.sleep(0.2)

    def configure(self, settings: dict[str, str]) -> None:
        """A connector that has these settings already is left in peace: a write would restart it."""
        with Connect(self.site).client() as client:
            known = client.get(f"/connectors/{PREFIX}/config")
            if known.status_code == httpx.codes.OK and known.json() == {**settings, "name": PREFIX}:
                return
            for attempt in Retrying(
                retry=retry_if_exception_type(httpx.HTTPStatusError),
                stop=stop_after_delay(self.patience),
                wait=wait_fixed(0.5),
                reraise=True,
            ):
                with attempt:  # 409 while the worker joins its group
                    client.put(f"/connectors/{PREFIX}/config", json=settings).raise_for_status()

    def state(self) -> str:
        """RUNNING only when the connector and its task are; else the first other state, or MISSING."""
        status = self._status()
        parts = [status["connector"], *status["tasks"]] if status else []
        states = [str(part["state"]) for part in parts]
        if len(states) < 2:
            return "FAILED" if "FAILED" in states else "MISSING"
        return next((state for state in states if state != "RUNNING"), "RUNNING")

    def state_or_unknown(self) -> str:
        try:
            return self.state()
        except httpx.HTTPError:
            return "UNKNOWN"

    def restart(self) -> None:
        """Of what failed only; harmless when nothing did."""
        with Connect(self.site).client() as client:
            query = {"includeTasks": "true", "onlyFailed": "true"}
            client.post(f"/connectors/{PREFIX}/restart", params=query)

    def wait_until_captured(self, *, seconds: float = 60.0) -> str:
        """Wait until Kafka has every change committed so far, and return that WAL position.

        The connector confirms a position only after Kafka has acknowledged all records before it. Pause the
        writers first, or what they commit after the call is not included.
        """
        with Postgres(self.site).connect(SHOP) as connection:
            connection.autocommit = True
            wanted = str(_value(connection, "SELECT pg_current_wal_lsn()"))
            # Something after it, because an idle stream confirms nothing. In a transaction: behind a restart
            # the connector looks for the next commit, and drops all it meets before it.
            connection.execute("SELECT pg_logical_emit_message(true, %s, 'caught up?')", (_HEARTBEAT,))
            deadline = time.monotonic() + seconds
            while True:
                row = connection.execute(_CONFIRMED, (wanted, SLOT)).fetchone()
                if row is not None and row[1]:
                    return wanted
                if time.monotonic() > deadline:
                    raise NotCapturedError(wanted, str(row[0]) if row else "nothing", seconds)
                time.sleep(0.1)

    def _slot_is_active(self) -> bool:
        with Postgres(self.site).connect(SHOP) as connection:
            return _value(connection, _SLOT_IS_ACTIVE, SLOT) is True

    def _status(self) -> dict[str, Any]:
        with Connect(self.site).client() as client:
            answer = client.get(f"/connectors/{PREFIX}/status")
        return dict(answer.json()) if answer.status_code == httpx.codes.OK else {}

    def _failure(self) -> str:
        status = self._status()
        parts = [status["connector"], *status["tasks"]] if status else []
        traces = [str(part["trace"]).splitlines()[0] for part in parts if part.get("trace")]
        return traces[0] if traces else f"its state is {self.state()}"


def _value(connection: psycopg.Connection[Any], query: str, *values: str) -> object:
    row = connection.execute(query.encode(), values).fetchone()
    return row[0] if row is not None else None


def connector_settings(site: Site) -> dict[str, str]:
    """Passwords are named, not contained: Connect's REST interface shows these settings to everybody."""
    converter = {
        "": AVRO_CONVERTER,
        ".apicurio.registry.url": Registry(site).own_url,
        ".apicurio.auth.username": REGISTRY_USER,
        ".apicurio.auth.password": f"${{env:{PASSWORD_REGISTRY}}}",
        ".apicurio.registry.auto-register": "true",
        ".apicurio.registry.find-latest": "false",
        ".apicurio.registry.dereference-schema": "true",
        ".apicurio.registry.headers.enabled": "false",
        ".apicurio.registry.as-confluent": "true",
        ".apicurio.registry.use-id": "contentId",
    }
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "tasks.max": "1",
        "topic.prefix": PREFIX,
        "database.hostname": LOOPBACK,
        "database.port": str(site.ports["postgres"]),
        "database.dbname": SHOP,
        "database.user": CONNECTOR_ROLE,
        "database.password": f"${{env:{PASSWORD_DATABASE}}}",
        "plugin.name": "pgoutput",
        "slot.name": SLOT,
        "publication.name": PREFIX,
        "publication.autocreate.mode": "disabled",
        "schema.include.list": "public",
        "signal.data.collection": f"public.{SIGNAL_TABLE}",
        "snapshot.mode": "initial",
        "decimal.handling.mode": "precise",
        "time.precision.mode": "adaptive",
        "tombstones.on.delete": "true",
        "skipped.operations": "none",
        "provide.transaction.metadata": "true",
        "heartbeat.interval.ms": "1000",
        "heartbeat.action.query": f"SELECT pg_logical_emit_message(false, '{_HEARTBEAT}', now()::text)",
        "message.prefix.exclude.list": _HEARTBEAT,
        "schema.name.adjustment.mode": "avro",
        "field.name.adjustment.mode": "avro",
        "poll.interval.ms": "50",
        "extended.headers.enabled": "false",
        "retriable.restart.connector.wait.ms": "2000",
        "topic.creation.default.replication.factor": "1",
        "topic.creation.default.partitions": "1",
        **{
            f"{side}.converter{name}": value for side in ("key", "value") for name, value in converter.items()
        },
    }

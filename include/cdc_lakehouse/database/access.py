"""A connection to a source database, and what it says of the connector that reads its log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import errors

from cdc_lakehouse.config.settings import Connection
from cdc_lakehouse.config.source_settings import SourceSettings, source_settings
from cdc_lakehouse.database.positions import LogPosition
from cdc_lakehouse.errors import SourceUnavailableError

_SECONDS_TO_CONNECT = 10
_SLOTS = """
SELECT slot_name, active, confirmed_flush_lsn::text FROM pg_replication_slots
WHERE slot_type = 'logical' AND database = current_database() AND slot_name = coalesce(%s, slot_name)
"""


@dataclass(frozen=True, slots=True)
class Slot:
    name: str
    active: bool
    """Whether somebody reads it now."""
    confirmed: LogPosition | None


@dataclass(frozen=True, slots=True)
class Database:
    """What goes wrong with it is a `SourceUnavailableError`, or what a person must grant."""

    settings: SourceSettings
    named: Connection

    @classmethod
    def of(cls, connection: Connection) -> Database:
        return cls(source_settings(connection), connection)

    @contextmanager
    def connected(self, *, patience: int = _SECONDS_TO_CONNECT) -> Iterator[psycopg.Connection[Any]]:
        """`patience`: seconds that each address of the host may take to answer."""
        settings = self.settings
        with (
            self._errors(),
            psycopg.connect(
                host=settings.host,
                port=settings.port,
                dbname=settings.database,
                user=settings.login,
                password=settings.password,
                sslmode=settings.sslmode,
                sslrootcert=settings.sslrootcert,
                require_auth=settings.require_auth,
                connect_timeout=patience,
                application_name="cdc_lakehouse",
                client_encoding="UTF8",
            ) as connection,
        ):
            yield connection

    def slots(self) -> tuple[Slot, ...]:
        """Those that count: the one that the connection names, or all logical ones of the database."""
        with self.connected() as connection:
            rows = connection.execute(_SLOTS, (self.settings.slot,)).fetchall()
        return tuple(
            Slot(name, active, None if confirmed is None else LogPosition.from_text(confirmed))
            for name, active, confirmed in rows
        )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except errors.InsufficientPrivilege as exc:
            raise self.named.problem(f"its login may not read: {_first_line(exc)}") from exc
        except psycopg.OperationalError as exc:
            address = self.settings.address
            raise SourceUnavailableError(address=address, reason=_first_line(exc)) from exc


def confirmed_by(slots: tuple[Slot, ...]) -> LogPosition | None:
    """What Kafka has acknowledged to the connector up to here; None where nobody tells it.

    A slot that nobody reads says nothing: a connector that takes its first snapshot has not begun with
    the log, and what it confirmed is where the log will begin.
    """
    known = [slot.confirmed for slot in slots if slot.active and slot.confirmed is not None]
    return min(known) if known and len(known) == len(slots) else None


def _first_line(exc: BaseException) -> str:
    return next(iter(str(exc).strip().splitlines()), type(exc).__name__)

"""Sessions with open transactions that carry out the steps which write."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from history.alterations import Alteration, Unsent, alteration_of  # type: ignore[import-not-found]
from history.shapes import shape_of  # type: ignore[import-not-found]
from history.statements import Statement, statements_of  # type: ignore[import-not-found]
from history.steps import DDL, SNAPSHOTS, TRUNCATES, Kind, Step  # type: ignore[import-not-found]
from history.tables import SCHEMA, SIGNALS, Table  # type: ignore[import-not-found]

logger = logging.getLogger(__name__)
_LOCKS = """SELECT EXISTS (SELECT FROM pg_locks WHERE pid = pg_backend_pid()
    AND locktype = 'relation' AND mode = 'AccessExclusiveLock')"""
_OPEN = (TransactionStatus.INTRANS, TransactionStatus.INERROR)


@dataclass(frozen=True, slots=True)
class UnsentColumn:
    """Rows of `table` that were last written before `stamp` have not sent `column`."""

    table: str
    column: str
    stamp: int
    silver: Unsent


@dataclass(slots=True)
class Writers:
    """One statement at a time: who would wait for another session fails instead, and always so."""

    connect: Callable[[], psycopg.Connection[Any]]
    tables: tuple[Table, ...]
    counts: Counter[str] = field(default_factory=Counter)
    """What became of transactions and statements."""
    unsent: list[UnsentColumn] = field(default_factory=list)
    read_again: set[str] = field(default_factory=set)
    """Tables of which a snapshot by signal sends all rows again, some time later."""
    _sessions: dict[int, psycopg.Connection[Any]] = field(default_factory=dict)

    def write(self, step: Step) -> None:
        """What PostgreSQL refuses is counted, and ends the transaction unless the step is guarded."""
        session = self._session(step.session)
        try:
            self._carry_out(session, step)
        except psycopg.OperationalError as exc:
            self._failed(session, step, exc)
            if session.closed:
                self._sessions.pop(step.session)
        except psycopg.Error as exc:
            self._failed(session, step, exc)

    def end_all(self) -> None:
        """Roll back what is open."""
        for session in self._sessions.values():
            with suppress(psycopg.Error):
                if session.info.transaction_status in _OPEN:
                    session.execute("ROLLBACK")
                    self.counts["rolled back"] += 1

    def unlock_tables(self) -> None:
        """Commit what has altered or truncated a table: a connector that asks for columns waits for it."""
        for session in self._sessions.values():
            with suppress(psycopg.Error):
                if session.info.transaction_status is TransactionStatus.INERROR:
                    session.execute("ROLLBACK")
                elif _holds_tables(session):
                    session.execute("COMMIT")
                    self.counts["committed for a connector that waits"] += 1

    def close(self) -> None:
        for session in self._sessions.values():
            with suppress(psycopg.Error):
                session.close()
        self._sessions.clear()

    def _session(self, number: int) -> psycopg.Connection[Any]:
        if number not in self._sessions:
            session = self.connect()
            session.execute("SET lock_timeout = '25ms'")
            session.execute("SET client_encoding = 'UTF8'")
            self._sessions[number] = session
        return self._sessions[number]

    def _failed(self, session: psycopg.Connection[Any], step: Step, exc: psycopg.Error) -> None:
        reason = type(exc).__name__
        self.counts[f"refused: {reason}"] += 1
        logger.debug("refused %s: %s", step, str(exc).splitlines()[0])
        with suppress(psycopg.Error):
            if session.info.transaction_status in _OPEN:
                session.execute("ROLLBACK")
                self.counts["rolled back"] += 1

    def _carry_out(self, session: psycopg.Connection[Any], step: Step) -> None:
        match step.kind:
            case Kind.BEGIN | Kind.COMMIT | Kind.ROLLBACK:
                self._bound(session, step.kind)
            case Kind.SAVEPOINT | Kind.ROLLBACK_TO | Kind.RELEASE:
                _savepoint(session, step.kind)
            case kind if kind in SNAPSHOTS:
                self._signal(session, step)
            case _:
                self._guarded(session, step)

    def _bound(self, session: psycopg.Connection[Any], kind: Kind) -> None:
        is_open = session.info.transaction_status in _OPEN
        if is_open is (kind is Kind.BEGIN):
            return
        session.execute(kind.value.encode())
        if kind is not Kind.BEGIN:
            self.counts["committed" if kind is Kind.COMMIT else "rolled back"] += 1

    def _guarded(self, session: psycopg.Connection[Any], step: Step) -> None:
        if not step.guarded or session.info.transaction_status not in _OPEN:
            self._changed(session, step)
            return
        session.execute("SAVEPOINT guard")
        try:
            self._changed(session, step)
        except psycopg.Error as exc:
            if session.closed:
                raise
            self.counts[f"refused: {type(exc).__name__}"] += 1
            session.execute("ROLLBACK TO SAVEPOINT guard")
        else:
            session.execute("RELEASE SAVEPOINT guard")

    def _changed(self, session: psycopg.Connection[Any], step: Step) -> None:
        table = next((table for table in self.tables if table.name == step.table), None)
        if table is None:
            return
        shape = shape_of(session, table)
        if step.kind in DDL:
            self._altered(session, table, alteration_of(step, shape))
            return
        others = [f"{SCHEMA}.{other.name}" for other in self.tables if other is not table]
        for statement in statements_of(step, shape, others=others):
            rows = _execute(session, statement)
            self.counts["rows written"] += max(0, rows)
            if step.kind in TRUNCATES:
                self.counts["truncated"] += statement.sql.startswith("TRUNCATE")
            if session.info.transaction_status is TransactionStatus.IDLE:
                self.counts["committed"] += 1

    def _altered(self, session: psycopg.Connection[Any], table: Table, alteration: Alteration | None) -> None:
        if alteration is None:
            return
        for statement in alteration.statements:
            session.execute(statement.encode())
            self.counts["altered"] += 1
        if alteration.column:
            stamp = _next_stamp(session)
            self.unsent.append(UnsentColumn(table.name, alteration.column, stamp, alteration.unsent))

    def _signal(self, session: psycopg.Connection[Any], step: Step) -> None:
        name = f"{SCHEMA}.{step.table}"
        told: dict[str, object] = {"data-collections": [name], "type": "incremental"}
        if step.kind is Kind.SNAPSHOT_FULL:
            told["type"] = "blocking"
        if step.kind is Kind.SNAPSHOT_PART:
            condition = {"data-collection": name, "filter": f"stamp % 2 = {step.seed % 2}"}
            told["additional-conditions"] = [condition]
        data = json.dumps(told)
        insert = f"INSERT INTO {SCHEMA}.{SIGNALS} VALUES (%s, 'execute-snapshot', %s) ON CONFLICT DO NOTHING"
        session.execute(insert, (f"step-{step.seed}", data))
        self.read_again.add(step.table)
        self.counts[f"signals: {step.kind}"] += 1


def _savepoint(session: psycopg.Connection[Any], kind: Kind) -> None:
    """One name for all of them: PostgreSQL nests them."""
    words = {Kind.SAVEPOINT: "SAVEPOINT", Kind.ROLLBACK_TO: "ROLLBACK TO SAVEPOINT", Kind.RELEASE: "RELEASE"}
    if session.info.transaction_status is not TransactionStatus.INTRANS:
        return
    if kind is Kind.SAVEPOINT:
        session.execute("SAVEPOINT here")
        return
    session.execute("SAVEPOINT there")  # if nobody made one, the transaction goes on
    try:
        session.execute(f"{words[kind]} here")
    except psycopg.Error:
        session.execute("ROLLBACK TO SAVEPOINT there")


def _next_stamp(session: psycopg.Connection[Any]) -> int:
    (stamp,) = session.execute(f"SELECT nextval('{SCHEMA}.stamps')").fetchone() or (0,)
    return int(stamp)


def _execute(session: psycopg.Connection[Any], statement: Statement) -> int:
    if statement.rows is None:
        return session.execute(statement.sql.encode(), statement.values).rowcount
    with session.cursor() as cursor:
        with cursor.copy(statement.sql.encode()) as copy:
            for row in statement.rows:
                copy.write_row(row)
        return cursor.rowcount


def _holds_tables(session: psycopg.Connection[Any]) -> bool:
    is_open = session.info.transaction_status is TransactionStatus.INTRANS
    return is_open and session.execute(_LOCKS).fetchone() == (True,)

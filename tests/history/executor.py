"""Carry out steps until one of them finds silver to be other than PostgreSQL."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from cdc_lakehouse.contract import ExitCode, Job
from history.driver import DriverFailedError, Results, WarmDriver, kill_group, submitted  # type: ignore[import-not-found]
from history.judging import Judge  # type: ignore[import-not-found]
from history.steps import Kind, Step  # type: ignore[import-not-found]
from history.world import ConnectorStuckError, World  # type: ignore[import-not-found]
from history.writers import Writers  # type: ignore[import-not-found]
from local_stack.process import kill_session

logger = logging.getLogger(__name__)
_TRIES = 6
_ANSWER = 1800.0
"""For a drain, in seconds: a machine that is busy with other work is no finding."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a history failed, and at which of its steps."""

    number: int
    step: Step
    sentence: str
    details: tuple[str, ...] = ()
    tables: frozenset[str] = frozenset()
    """That it is about; empty where nobody knows."""


class FoundError(Exception):
    def __init__(self, sentence: str, details: Iterable[str] = (), *, tables: Iterable[str] = ()) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.details = tuple(details)
        self.tables = frozenset(tables)


@dataclass(slots=True)
class Executor:
    """`between` is called with the world before each comparison: a test breaks silver there."""

    world: World
    driver: WarmDriver
    folder: Path
    between: Callable[[World], None] = lambda _world: None
    counts: Counter[str] = field(default_factory=Counter)
    done: list[Step] = field(default_factory=list)
    milliseconds: Counter[str] = field(default_factory=Counter)
    writers: Writers = field(init=False)
    judge: Judge = field(init=False)
    _running: Future[Results] | None = None

    def __post_init__(self) -> None:
        self.writers = Writers(self.world.connect, self.world.tables)
        points = self.folder / f"{self.world.name}-content"
        self.judge = Judge(self.world, self.writers, points, self.counts)

    def run(self, steps: Iterable[Step], *, seconds: float) -> Finding | None:
        """Until they end, or time does; a history that is cut short ends with a quiet point too."""
        until = time.monotonic() + seconds
        step = Step(Kind.QUIET)
        try:
            for step in steps:
                self._timed(step)
                if step.kind is Kind.QUIET and time.monotonic() > until:
                    return None
            self._timed(Step(Kind.QUIET))
        except FoundError as exc:
            return Finding(len(self.done), step, exc.sentence, exc.details, exc.tables)
        except ConnectorStuckError as exc:
            return Finding(len(self.done), step, "the connector is stuck", (str(exc),))
        finally:
            self.writers.close()
        return None

    def _timed(self, step: Step) -> None:
        began = time.monotonic()
        self.done.append(step)
        self.counts["steps"] += 1
        try:
            self.carry_out(step)
        finally:
            self._spent(step.kind if step.kind in _SLOW else "write", began)

    def _spent(self, on: str, began: float) -> None:
        self.milliseconds[on] += round(1000 * (time.monotonic() - began))

    def carry_out(self, step: Step) -> None:
        act = {
            Kind.QUIET: self._quiet,
            Kind.DRAIN: self._drain,
            Kind.CUT: self._cut,
            Kind.KILL_CONNECT: self._kill_connect,
            Kind.RESTART_TASK: self._restart_task,
            Kind.RESTART_POSTGRES: self._restart_postgres,
        }.get(step.kind)
        if act is not None:
            act()
        elif step.kind is Kind.KILL_DRIVER:
            self._kill_driver(Random(step.seed))  # noqa: S311
        elif step.kind is Kind.KILL_SUBMITTED:
            self._kill_submitted(Random(step.seed))  # noqa: S311
        elif step.kind is Kind.NEW_SLOT:
            self._new_slot(step)
        else:
            self.writers.write(step)

    def _drain(self) -> None:
        """Beside the writers, over whatever Kafka has by then."""
        self._settled()
        self._running = self.driver.order(self.world.name)
        self.counts["drains"] += 1

    def _cut(self) -> None:
        """All that is committed, and not what is in open transactions."""
        self._start_connect()
        self.writers.unlock_tables()
        self.world.wait_until_captured()
        self._drain()
        self._settled()

    def _settled(self) -> bool:
        """Wait for the drain that runs; True when it found nothing to do."""
        if self._running is None:
            return False
        running, self._running = self._running, None
        try:
            results = running.result(_ANSWER)
        except DriverFailedError as exc:
            raise FoundError("the driver failed", str(exc).splitlines()) from exc
        return self._judged(results)

    def _judged(self, results: Results) -> bool:
        """A red table is a finding, unless it asks to be tried again."""
        tables = [(result["job"], table) for result in results for table in result["tables"]]
        for result in results:
            if result["job"] == Job.BRONZE_INGEST:
                ranges = [span for t in result["tables"] for p in t["ranges"].values() for span in p.values()]
                self.counts["records"] += sum(end - start for start, end in ranges)
        failed = [(job, table) for job, table in tables if table["error"] is not None]
        red = [(job, t) for job, t in failed if t["error"]["exit_code"] != ExitCode.RETRY]
        if red:
            told = [f"{job} {t['table']}: {t['error']['code']}: {t['error']['sentence']}" for job, t in red]
            raise FoundError("a job is red", told, tables=[table["table"] for _, table in red])
        self.counts["tables to be tried again"] += len(failed)
        return not failed and all(table["status"] == "idle" for _, table in tables)

    def _quiet(self) -> None:
        """Nobody writes: all of it through the chain, and then both sides side by side."""
        self.writers.end_all()
        self._start_connect()
        self._settled()
        began = time.monotonic()
        self.world.wait_until_captured()
        self._spent("waiting for the connector", began)
        for _ in range(_TRIES):
            self._drain()
            if self._settled():
                break
        else:
            raise FoundError("the jobs do not come to rest")
        self.between(self.world)
        self._compared()

    def _compared(self) -> None:
        began = time.monotonic()
        if found := self.judge.differences():
            tables = {difference.table for difference in found}
            raise FoundError("silver differs from PostgreSQL", self.judge.explained(found), tables=tables)
        self._spent("comparing", began)

    def _kill_connect(self) -> None:
        if record := self.world.stack.state.processes.get("connect"):
            kill_session(record)
            self.counts["kills"] += 1

    def _start_connect(self) -> None:
        if "connect" not in self.world.stack.running():
            self.world.stack.start("connect")

    def _restart_task(self) -> None:
        self._start_connect()
        self.world.restart_task()
        self.counts["restarts"] += 1

    def _restart_postgres(self) -> None:
        """A fast shutdown: open transactions are rolled back, and the connector finds nobody for a while."""
        self._start_connect()
        self.writers.end_all()
        self.writers.close()
        self.world.stack.stop("postgres")
        self.world.stack.start("postgres")
        self.counts["restarts"] += 1

    def _new_slot(self, step: Step) -> None:
        """What is changed while there is none is in the snapshot only, and what is deleted nowhere.

        Not in tables without a key, whose rows no snapshot replaces; and no table is empty behind it, or no
        row would say that it was read.
        """
        self.writers.end_all()
        self._start_connect()
        self.world.wait_until_captured()
        self.world.lose_slot()
        for table in self.world.tables:
            self.writers.read_again.add(table.name)
            for kind in (Kind.INSERT_MANY, Kind.INSERT, Kind.UPDATE, Kind.DELETE) if table.key else ():
                self.writers.write(Step(kind, table.name, _NOBODYS, step.seed))
        self.world.begin_slot()
        self.counts["slots"] += 1

    def _kill_driver(self, chance: Random) -> None:
        """In the middle of the drain that runs, if it lasts that long."""
        time.sleep(chance.uniform(0.0, 5.0))
        running, self._running = self._running, None
        if running is not None and running.done():
            self._running = running
            self._settled()
        self.driver.kill()
        self.driver.start()
        self.counts["kills"] += 1

    def _kill_submitted(self, chance: Random) -> None:
        """By spark-submit: ingest mostly, sometimes merge."""
        self._settled()
        job = chance.choice((Job.BRONZE_INGEST, Job.BRONZE_INGEST, Job.SILVER_MERGE))
        process = submitted(self.world.stack, self.folder, job, pipeline=self.world.name)
        time.sleep(chance.uniform(4.0, 20.0))
        self.counts["kills"] += kill_group(process) != 0


_NOBODYS = -1
"""The session of statements that no step of the plan writes."""
_SLOW = frozenset(
    kind
    for kind in Kind
    if kind in (Kind.QUIET, Kind.CUT, Kind.DRAIN) or any(word in kind for word in ("kill", "restart", "slot"))
)

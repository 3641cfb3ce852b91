"""Processes that end, or hang, at moments of a seeded clock; and two that do the same at once."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path

from cdc_lakehouse.contract import ExitCode, Job
from crash.broker import SMALL_BATCHES  # type: ignore[import-not-found]
from crash.driver import (  # type: ignore[import-not-found]
    ALL_TO_THE_END,
    ONE_BATCH,
    DriverFailedError,
    Results,
    SubmittedJob,
    WarmDriver,
)
from crash.golden import Golden  # type: ignore[import-not-found]
from crash.invariants import Findings  # type: ignore[import-not-found]
from crash.mutations import Storage  # type: ignore[import-not-found]
from crash.records import PARTITIONS  # type: ignore[import-not-found]
from crash.replay import Bench  # type: ignore[import-not-found]

LAKES_PER_DRIVER = 8
"""Runs that one signal meets, each in a lake of its own and at another place of its work."""
_PATIENCE = 900.0
_GREEN_OR_AGAIN = {ExitCode.DONE, ExitCode.RETRY}
_TOGETHER = (tuple(PARTITIONS), ONE_BATCH)
_JOBS = (*ALL_TO_THE_END, Job.OPTIMIZE)


@dataclass(slots=True)
class Met:
    """How many runs were met by a signal, and what became of their lakes."""

    count: int = 0
    signals: int = 0
    """One may meet several runs."""
    findings: Findings = field(default_factory=Findings)


@dataclass(slots=True)
class Victims:
    """Runs of one table each, on lakes that begin in states of the golden run."""

    bench: Bench
    golden: Golden
    chance: random.Random

    def ordered(self, driver: WarmDriver, lakes: int) -> list[Victim]:
        found = []
        for _ in range(lakes):
            anywhere, states = self.chance.choice(self.golden.states), self.golden.states
            start = self.chance.choice((states[0], self.golden.quarantined(), anywhere))
            # One table in small batches, or all of them by one query.
            tables, size = self.chance.choice((*(((t,), SMALL_BATCHES) for t in PARTITIONS), _TOGETHER))
            lake = self.bench.lake(start)
            future = driver.order(lake, *_JOBS, max_offsets=size, tables=list(tables))
            found.append(Victim(lake, tables, future))
        return found


@dataclass(frozen=True, slots=True)
class Victim:
    lake: Path
    tables: tuple[str, ...]
    run: Future[Results]


def driver_of(bench: Bench, name: str) -> WarmDriver:
    return WarmDriver(bench.world, name, threads=LAKES_PER_DRIVER)


def killed(bench: Bench, golden: Golden, *, kills: int, seed: int) -> Met:
    """SIGKILL to the process group of drivers in the middle of several runs each."""
    victims, met = Victims(bench, golden, random.Random(seed)), Met()
    longest = 20.0
    while met.count < kills:
        with driver_of(bench, f"killed-{met.signals + 1}") as driver:
            driver.ready()
            began = time.monotonic()
            runs = victims.ordered(driver, min(LAKES_PER_DRIVER, kills - met.count))
            _wait_for_first(runs, seconds=victims.chance.uniform(0.3, longest))
            longest = max(4.0, min(longest, 1.5 * (time.monotonic() - began)))
            met.count += sum(not victim.run.done() for victim in runs)
            driver.kill()
            met.signals += 1
        met.findings.include(healed(bench, runs, what="killed"), where=f"kill {met.signals}")
    return met


def healed(bench: Bench, runs: Sequence[Victim], *, what: str, keep: bool = False) -> Findings:
    lakes = {victim.lake: victim.tables for victim in runs}
    found: Findings = bench.heal_all(lakes, what=what, keep=keep)
    return found


def _wait_for_first(runs: Sequence[Victim], *, seconds: float) -> None:
    """That long, but not until all runs have ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not any(victim.run.done() for victim in runs):
        time.sleep(0.05)


def killed_as_submitted(bench: Bench, *, kills: int, seed: int) -> Met:
    """SIGKILL to spark-submit's process group, started as the operator starts it."""
    chance, met = random.Random(seed), Met()
    lakes = []
    for _ in range(kills):
        lake = bench.lake(Storage())
        job = SubmittedJob(bench.world, lake, Job.BRONZE_INGEST)
        job.wait_for("drain planned")
        time.sleep(chance.uniform(0.0, 8.0))
        if job.kill() != 0:
            met.count += 1
            met.signals += 1
        lakes.append(lake)
    for table in PARTITIONS:
        # spark-submit asked the broker itself who it is.
        found = bench.heal_all(
            dict.fromkeys(lakes, (table,)), what="killed as submitted", real_ids=True, keep=True
        )
        met.findings.include(found, where="kill")
    return met


def zombies(bench: Bench, golden: Golden, driver: WarmDriver, *, zombies: int, seed: int) -> Met:
    """SIGSTOP to a driver, another run completes beside it, SIGCONT: it goes on with what it believes."""
    victims, met = Victims(bench, golden, random.Random(seed)), Met()
    while met.count < zombies:
        runs = victims.ordered(driver, min(LAKES_PER_DRIVER, zombies - met.count))
        _wait_for_first(runs, seconds=victims.chance.uniform(0.2, 12.0))
        driver.stop()
        met.signals += 1
        met.count += sum(not victim.run.done() for victim in runs)
        beside = healed(bench, runs, what="beside the zombie", keep=True)
        met.findings.include(beside, where=f"zombie {met.signals}")
        driver.go_on()
        met.findings.include(_awake(bench, runs), where=f"zombie {met.signals}")
        met.findings.include(healed(bench, runs, what="behind the zombie"), where=f"zombie {met.signals}")
    return met


def at_once(bench: Bench, golden: Golden, driver: WarmDriver, *, pairs: int, seed: int) -> Met:
    """Two drivers do the same work on one lake at the same time."""
    victims = Victims(bench, golden, random.Random(seed))
    ours = victims.ordered(driver, pairs)
    theirs = [
        replace(
            victim,
            run=bench.driver.order(
                victim.lake, *ALL_TO_THE_END, max_offsets=SMALL_BATCHES, tables=list(victim.tables)
            ),
        )
        for victim in ours
    ]
    met = Met(count=len(ours))
    met.findings.include(_awake(bench, [*ours, *theirs]), where="two at once")
    met.findings.include(healed(bench, ours, what="behind two at once"), where="two at once")
    return met


def _awake(bench: Bench, runs: Sequence[Victim]) -> Findings:
    """A run that lost may be red and be tried again; it may not say what is not so."""
    found = Findings()
    for victim in runs:
        where = victim.lake.name
        try:
            results = victim.run.result(_PATIENCE)
        except DriverFailedError as exc:
            found.add("stuck", 1, f"{where} raised: {str(exc).splitlines()[-1]}")
            continue
        found.include(bench.untrue(victim.lake, results), where=where)
        for result in results:
            if result["exit_code"] not in _GREEN_OR_AGAIN:
                told = [t["error"] for t in result["tables"] if t["error"]]
                found.add("stuck", 1, f"{where}: {result['job']} ended with {result['exit_code']}: {told}")
    return found

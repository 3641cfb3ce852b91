"""Repairs that end between any two changes of storage: a reader has each table as before or as after, and
the next try of the same plan finishes them, with the pipeline's runs behind it or before it.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdc_lakehouse.contract import ExitCode
from cdc_lakehouse.run_modes import RepairStep
from crash.broker import World  # type: ignore[import-not-found]
from crash.driver import INGEST_AND_MERGE, DriverFailedError  # type: ignore[import-not-found]
from crash.invariants import Findings  # type: ignore[import-not-found]
from crash.mutations import Storage  # type: ignore[import-not-found]
from crash.records import PARTITIONS  # type: ignore[import-not-found]
from crash.repair_recording import RecordedRepair, RepairsRecording  # type: ignore[import-not-found]
from crash.repairs import (  # type: ignore[import-not-found]
    SETTINGS,
    TABLE,
    Contents,
    Repair,
    contents_of,
    ended,
    expected_behind,
    half_done,
    step_of,
)
from crash.replay import AT_ONCE, TRIES, Bench, errors_of  # type: ignore[import-not-found]
from crash.states import State, collapsed, enumerated  # type: ignore[import-not-found]

_LEFT_BY_CRASHES = frozenset({"prefix", "torn"})
_OTHER_STATES = 1 / 8
"""Share of the states that people leave beside those: a repair reads no checkpoint of a query."""
_SCHEDULE_FIRST = 4
"""Of so many states one is also run by the schedule before the repair is tried again."""


@dataclass(frozen=True, slots=True)
class Course:
    """One repair, and what a reader had before it and has behind it."""

    repair: Repair
    before: Contents
    after: Contents


@dataclass(frozen=True, slots=True)
class Trial:
    """One state that a killed repair left."""

    course: Course
    state: State
    is_schedule_first: bool = False
    """Whether the pipeline runs before the repair is tried again."""

    @property
    def name(self) -> str:
        first = ", the schedule first" if self.is_schedule_first else ""
        return f"{self.course.repair.name}: {self.state.variant} {self.state.name}{first}"


@dataclass(frozen=True, slots=True)
class Trials:
    enumerated: int
    trials: Sequence[Trial]
    """In a seeded order, so that a part of them has some of each repair."""

    def part(self, number: int, of: int) -> Sequence[Trial]:
        return self.trials[number - 1 :: of]


def trials_of(world: World, recording: RepairsRecording, *, witnesses: int, seed: int) -> Trials:
    """Return a trial for each state that differs to a run, and for some of them a second one."""
    chance, count, trials = random.Random(seed), 0, []
    for recorded in recording.repairs:
        storages = recorded.states
        states = (
            state
            for state in enumerated(recorded.mutations, storages, seed=seed)
            if state.variant in _LEFT_BY_CRASHES or chance.random() < _OTHER_STATES
        )
        every = collapsed(states, witnesses=witnesses, seed=seed)
        count += every.enumerated
        course = _course(recorded, storages, world.folder)
        different = [work.state for work in every.work if TABLE in work.tables]
        twice = chance.sample(different, -(-len(different) // _SCHEDULE_FIRST))
        trials += [Trial(course, state) for state in different]
        trials += [Trial(course, state, is_schedule_first=True) for state in twice]
    chance.shuffle(trials)
    return Trials(count, trials)


def _course(recorded: RecordedRepair, states: Sequence[Storage], folder: Path) -> Course:
    before, after = (_contents(storage, folder) for storage in (recorded.planned, states[-1]))
    return Course(recorded.repair, before, after)


def _contents(storage: Storage, folder: Path) -> Contents:
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        return contents_of(storage.written_to(Path(scratch) / "lake"))


def tried(bench: Bench, trials: Iterable[Trial]) -> Findings:
    """Run each trial in a lake of its own, some side by side. Clean lakes are deleted."""
    found = Findings()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for trial, single in pool.map(lambda each: (each, _tried(bench, each)), trials):
            found.include(single, where=trial.name)
    return found


def _tried(bench: Bench, trial: Trial) -> Findings:
    course, repair = trial.course, trial.course.repair
    lake = bench.lake(trial.state.storage)
    found: Findings = half_done(bench.seen(lake), before=course.before, after=course.after)
    try:
        if trial.is_schedule_first:
            found.include(_scheduled(bench, lake, repair), where="schedule")
        for step in (RepairStep.ACT, RepairStep.VERIFY):
            found.include(_stepped(bench, lake, repair, step), where=step)
    except (DriverFailedError, TimeoutError) as exc:
        if not bench.driver.is_alive():
            raise
        found.add("stuck", 1, f"a run did not end: {str(exc).strip().splitlines()[-1:]}")
        return found
    expected = expected_behind(bench, repair)
    healed = bench.heal(lake, *repair.tables_behind, expected=expected, **SETTINGS)
    found.include(healed, where="behind it")
    found.include(ended(bench, lake, repair, planned=course.before), where="end")
    if found.is_clean:
        shutil.rmtree(lake)
    return found


def _stepped(bench: Bench, lake: Path, repair: Repair, step: RepairStep) -> Findings:
    """Take a step until it is green; only what may be tried again is."""
    found = Findings()
    for attempt in range(1, TRIES + 1):
        results = step_of(bench.driver, lake, repair, step)
        codes = {result["exit_code"] for result in results}
        if codes == {ExitCode.DONE}:
            break
        if codes != {ExitCode.RETRY} or attempt == TRIES:
            found.add("stuck", 1, f"exit codes {sorted(codes)}: {errors_of(results)}")
            break
    return found


def _scheduled(bench: Bench, lake: Path, repair: Repair) -> Findings:
    """Run the pipeline as its schedule does, which knows nothing of the repair."""
    order: dict[str, Any] = {**SETTINGS, "tables": _tables_of_pipeline(repair)}
    results = bench.driver.run(lake, *INGEST_AND_MERGE, **order)
    found = bench.untrue(lake, results)
    codes = {result["exit_code"] for result in results}
    if not codes <= {ExitCode.DONE, ExitCode.RETRY}:
        found.add("stuck", 1, f"exit codes {sorted(codes)}: {errors_of(results)}")
    return found


def _tables_of_pipeline(repair: Repair) -> Sequence[str]:
    """Return the tables that the schedule reads while the repair is carried out."""
    return [name for name in PARTITIONS if name != TABLE] if repair.is_left_out else [TABLE]

"""A table whose keys moved to a new partition, and merges of it that end between two of their commits.

The connector sends a block again after a crash, and by then the topic has one partition more: older events
come behind a delete and a truncate. What keeps rows away that are gone is written by several commits.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cdc_lakehouse.contract import ExitCode, Job
from crash.driver import ONE_BATCH  # type: ignore[import-not-found]
from crash.invariants import Findings  # type: ignore[import-not-found]
from crash.mutations import Storage  # type: ignore[import-not-found]
from crash.records import MOVED, moved_steps  # type: ignore[import-not-found]
from crash.replay import Bench  # type: ignore[import-not-found]

_BEHIND_TWO = 2
"""Commits of a first merge: silver is made, then its tombstones. Turned round, silver has rows by then."""
_BEHIND_TOMBSTONES = 1
"""Of a later one."""


@dataclass(frozen=True, slots=True)
class MovedKeys:
    """Lakes of the table, and the second round is in Kafka by now."""

    unmerged: Storage
    """Bronze has the first round, and there is no silver."""
    behind: Storage
    """Bronze has both rounds, silver the first."""

    @classmethod
    def made(cls, bench: Bench) -> MovedKeys:
        """Sends the records: once for a broker."""
        lake = bench.lake(Storage())
        bench.world.send(MOVED, moved_steps(round_=1))
        _green(bench, lake, Job.BRONZE_INGEST)
        unmerged = Storage.of(lake)
        bench.world.send(MOVED, moved_steps(round_=2))
        _green(bench, lake, Job.SILVER_MERGE)
        _green(bench, lake, Job.BRONZE_INGEST)
        return cls(unmerged, Storage.of(lake))

    def first_merge_ends(self, bench: Bench, *, guards_off: tuple[str, ...]) -> Findings:
        """Before its rows are there. The next one finds their older events again, in the new partition."""
        lake = bench.lake(self.unmerged)
        order = {"tables": [MOVED], "guards_off": guards_off}
        bench.driver.run(lake, Job.SILVER_MERGE, ends_behind=_BEHIND_TWO, **order)
        _green(bench, lake, Job.SILVER_MERGE, guards_off=guards_off)
        found: Findings = bench.heal(lake, MOVED, guards_off=guards_off)
        return found

    def later_merge_ends(self, bench: Bench, *, guards_off: tuple[str, ...]) -> Findings:
        """Between the tombstone of a delete and the delete itself."""
        lake = bench.lake(self.behind)
        order = {"tables": [MOVED], "guards_off": guards_off}
        bench.driver.run(lake, Job.SILVER_MERGE, ends_behind=_BEHIND_TOMBSTONES, **order)
        found: Findings = bench.heal(lake, MOVED, guards_off=guards_off)
        return found


def _green(bench: Bench, lake: Path, job: Job, *, guards_off: tuple[str, ...] = ()) -> None:
    results = bench.driver.run(lake, job, tables=[MOVED], max_offsets=ONE_BATCH, guards_off=guards_off)
    if {result["exit_code"] for result in results} != {ExitCode.DONE}:
        raise RuntimeError(f"{job} of {MOVED} is not green: {results}")

"""For each mechanism a case that it decides: clean with it, not clean without it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from cdc_lakehouse.contract import ExitCode, Job
from crash.broker import PIPELINE, SMALL_BATCHES  # type: ignore[import-not-found]
from crash.driver import INGEST_AND_MERGE, ONE_BATCH  # type: ignore[import-not-found]
from crash.faults import GIVEN_UP  # type: ignore[import-not-found]
from crash.golden import Golden  # type: ignore[import-not-found]
from crash.guards import SHARED_CHECKPOINT  # type: ignore[import-not-found]
from crash.hands import lost_answer, restored_by_hand  # type: ignore[import-not-found]
from crash.invariants import Expected, Findings, examine, ledgers  # type: ignore[import-not-found]
from crash.moved_keys import MovedKeys  # type: ignore[import-not-found]
from crash.mutations import Storage  # type: ignore[import-not-found]
from crash.records import MOVED  # type: ignore[import-not-found]
from crash.replay import Bench  # type: ignore[import-not-found]
from crash.states import CHECKPOINTS  # type: ignore[import-not-found]

_PATIENCE = 600.0
ORDERS = ("orders",)
_OF_A_BATCH = 2
"""Among the commits of a run: the table's making is the first."""
_OF_A_MERGE = 3
"""Behind the making of silver: tombstones are made and written."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One case, run on a bench that may have guards turned off."""

    bench: Bench
    golden: Golden
    moved: MovedKeys
    guards_off: tuple[str, ...] = ()

    def lake(self, storage: Storage) -> Path:
        lake: Path = self.bench.lake(storage)
        return lake


def zombie_ingest(trial: Trial) -> Findings:
    """A run that has all to do waits before it commits; another completes; the first goes on."""
    return _zombie(trial, Job.BRONZE_INGEST, trial.golden.states[0])


def zombie_merge(trial: Trial) -> Findings:
    """The same with the first merge of a table."""
    return _zombie(trial, Job.SILVER_MERGE, _created(trial.golden))


def zombie_merge_of_moved_keys(trial: Trial) -> Findings:
    """The same, and the other merge deletes a row that this one is to insert."""
    return _zombie(trial, Job.SILVER_MERGE, trial.moved.unmerged, tables=(MOVED,))


def _created(golden: Golden) -> Storage:
    """Silver is made, and has no row yet."""
    first = f"silver/{PIPELINE}/orders/_delta_log/{0:020d}.json"
    return next(state for state in golden.states if first in state.files)


def _zombie(trial: Trial, job: Job, start: Storage, *, tables: tuple[str, ...] = ORDERS) -> Findings:
    found, lake = Findings(), trial.lake(start)
    with _held_before_its_commit(trial, lake, job, found, tables=tables):
        found.include(trial.bench.heal(lake, *tables), where=f"beside {job}")
    found.include(trial.bench.heal(lake, *tables), where=f"behind {job}")
    return found


def replay_overtaken(trial: Trial) -> Findings:
    """A replay waits before it commits; what arrived since then is ingested; the replay goes on."""
    found = Findings()
    lake = trial.lake(trial.golden.quarantined())
    with _held_before_its_commit(trial, lake, Job.QUARANTINE_REPLAY, found):
        trial.bench.driver.run(lake, *INGEST_AND_MERGE, tables=ORDERS, max_offsets=ONE_BATCH)
    found.include(trial.bench.heal(lake, *ORDERS), where="behind a replay")
    return found


@contextmanager
def _held_before_its_commit(
    trial: Trial, lake: Path, job: Job, found: Findings, *, tables: tuple[str, ...] = ORDERS
) -> Iterator[None]:
    """For the length of the block; then it goes on, and may be red, but say nothing untrue."""
    pause = lake.with_suffix(".pause")
    pause.touch()
    zombie = trial.bench.driver.order(
        lake, job, tables=tables, max_offsets=ONE_BATCH, pause=str(pause), guards_off=trial.guards_off
    )
    _wait_for(pause.with_suffix(".reached"))
    yield
    pause.unlink()
    results = zombie.result(_PATIENCE)
    if pause.with_suffix(GIVEN_UP).exists():
        raise TimeoutError(f"{job} was held for too long: this machine is too slow for the case")
    found.include(trial.bench.untrue(lake, results), where=f"zombie of {job}")
    codes = {result["exit_code"] for result in results}
    if not codes <= {ExitCode.DONE, ExitCode.RETRY}:
        found.add("stuck", 1, f"zombie of {job} ended with {codes}")


def records_that_came_late(trial: Trial) -> Findings:
    """Silver has passed records that are decoded now: older than a deletion, and the only ones of a key."""
    lake = trial.lake(trial.golden.quarantined())
    return trial.bench.heal(lake, *ORDERS, guards_off=trial.guards_off)


def bronze_read_again(trial: Trial) -> Findings:
    """Bronze of a table is gone; its records come again, and those that silver has passed are decoded now."""
    folder = f"bronze/{PIPELINE}/{ORDERS[0]}/"
    lake = trial.lake(trial.golden.quarantined().without(lambda path: path.startswith(folder)))
    return trial.bench.heal(lake, *ORDERS, guards_off=trial.guards_off)


def answer_of_a_batch_lost(trial: Trial) -> Findings:
    lost = lost_answer(trial.bench, commit=_OF_A_BATCH, guards_off=trial.guards_off)
    if not lost.happened:
        raise RuntimeError(f"the run made no commit {_OF_A_BATCH}")
    return cast(Findings, lost.findings)


def answer_of_a_merge_lost(trial: Trial) -> Findings:
    # A merge takes all tables that have a bronze, and their commits come in any order.
    start = _created(trial.golden).without(lambda path: path.startswith(f"bronze/{PIPELINE}/customers/"))
    lost = lost_answer(
        trial.bench, commit=_OF_A_MERGE, start=start, jobs=(Job.SILVER_MERGE,), guards_off=trial.guards_off
    )
    if not lost.is_merge:
        raise RuntimeError(f"commit {_OF_A_MERGE} of a merge is not the one that states its step")
    return cast(Findings, lost.findings)


def first_merge_of_moved_keys_ends(trial: Trial) -> Findings:
    return trial.moved.first_merge_ends(trial.bench, guards_off=trial.guards_off)


def later_merge_of_moved_keys_ends(trial: Trial) -> Findings:
    return trial.moved.later_merge_ends(trial.bench, guards_off=trial.guards_off)


def everything_once(trial: Trial) -> Findings:
    lake = trial.lake(Storage())
    return trial.bench.heal(lake, *ORDERS, guards_off=trial.guards_off)


def block_sent_again(trial: Trial) -> Findings:
    """A merge ends in the middle of events that are sent again: they are older than what silver holds."""
    lake = trial.lake(trial.golden.inside_second_round("orders"))
    *_, ledger = ledgers(f"{lake.as_uri()}/bronze/{PIPELINE}/orders")
    (partitions,) = ledger.sources.values()
    trial.bench.driver.run(lake, Job.SILVER_MERGE, tables=ORDERS, guards_off=trial.guards_off)
    sent = trial.bench.world.sent["orders"]
    arrived = [each for each in sent if each.offset < partitions[each.partition].end]
    found: Findings = examine(trial.bench.seen(lake), Expected.of("orders", arrived))
    return found


def restored(trial: Trial) -> Findings:
    return restored_by_hand(trial.bench, trial.golden, layer="bronze", guards_off=trial.guards_off)


def topic_made_again(trial: Trial) -> Findings:
    """Kafka has another topic of the same name: the table must stop and say so."""
    lake = trial.lake(trial.golden.after_first_round())
    identity = asdict(trial.golden.identity)
    identity["topic_ids"] = dict.fromkeys(identity["topic_ids"], "made-again")
    (result,) = trial.bench.driver.run(
        lake, Job.BRONZE_INGEST, tables=ORDERS, max_offsets=ONE_BATCH, identity=identity,
        guards_off=trial.guards_off,
    )  # fmt: skip
    found = Findings()
    if result["exit_code"] != ExitCode.DATA:
        found.add("lost", 1, f"orders was made again and nobody was told: exit code {result['exit_code']}")
    return found


def checkpoint_ahead_of_its_table(trial: Trial) -> Findings:
    """Whatever lies in the checkpoints' folder is newer than the table."""
    newest = trial.golden.states[-1]
    attempts = sorted(
        {
            path.removeprefix(f"{CHECKPOINTS}orders/").split("/")[0]
            for path in newest.files
            if "orders/2" in path
        }
    )
    folder = f"{CHECKPOINTS}orders/{attempts[0]}/"
    copied = {
        f"{CHECKPOINTS}orders/{SHARED_CHECKPOINT}/{path.removeprefix(folder)}": data
        for path, data in newest.files.items()
        if path.startswith(folder)
    }
    lake = trial.lake(Storage().with_files(copied))
    return trial.bench.heal(lake, *ORDERS, guards_off=trial.guards_off)


def checkpoint_at_its_own_place(trial: Trial) -> Findings:
    """An older checkpoint lies where the attempt's own is to be: it must not be gone on with."""
    newest = trial.golden.states[-1]
    attempt = min(
        path.removeprefix(f"{CHECKPOINTS}orders/").split("/")[0]
        for path in newest.files
        if path.startswith(f"{CHECKPOINTS}orders/")
    )
    kept = {
        path: data
        for path, data in newest.files.items()
        if path.startswith(f"{CHECKPOINTS}orders/{attempt}/")
    }
    lake = trial.lake(Storage().with_files(kept))
    found = Findings()
    results = trial.bench.driver.run(
        lake, Job.BRONZE_INGEST, tables=ORDERS, attempt=attempt, guards_off=trial.guards_off,
        max_offsets=SMALL_BATCHES,
    )  # fmt: skip
    found.include(trial.bench.untrue(lake, results), where="first run")
    found.include(trial.bench.heal(lake, *ORDERS), where="next run")
    return found


@dataclass(frozen=True, slots=True)
class Mutant:
    """A guard that is turned off: the case that shows it, and as what."""

    case: Callable[[Trial], Findings]
    shows: str
    is_alone: bool = False
    """It is turned off for the whole process, so nothing else may run beside it."""

    def is_noticed(self, without: Findings) -> bool:
        return bool(getattr(without, self.shows))


MUTANTS: dict[str, Mutant] = {
    "compare_and_set": Mutant(zombie_ingest, "duplicated"),
    "replacement_fence": Mutant(zombie_merge, "half_written"),
    "merge_fence": Mutant(zombie_merge_of_moved_keys, "half_written"),
    "read_back": Mutant(zombie_merge, "stuck"),
    "outcome_unknown": Mutant(answer_of_a_batch_lost, "stuck"),
    "merge_outcome": Mutant(answer_of_a_merge_lost, "stuck"),
    "replacement_outcome": Mutant(answer_of_a_merge_lost, "stuck"),
    "tombstones": Mutant(first_merge_of_moved_keys_ends, "half_written"),
    "tombstones_first": Mutant(first_merge_of_moved_keys_ends, "half_written"),
    "truncate_mark": Mutant(first_merge_of_moved_keys_ends, "half_written"),
    "new_checkpoint": Mutant(checkpoint_at_its_own_place, "lost"),
    "read_committed": Mutant(everything_once, "half_written"),
    "foreign_commit": Mutant(restored, "lost"),
    "incarnation": Mutant(topic_made_again, "lost"),
    "position_gate": Mutant(block_sent_again, "half_written", is_alone=True),
    "scratch_checkpoint": Mutant(checkpoint_ahead_of_its_table, "lost"),
    "one_commit": Mutant(everything_once, "stuck"),
    "replay_fence": Mutant(replay_overtaken, "stuck"),
    "redo": Mutant(records_that_came_late, "lost"),
    "read_again": Mutant(bronze_read_again, "lost"),
    "refold": Mutant(records_that_came_late, "half_written"),
}
CASES = (*dict.fromkeys(mutant.case for mutant in MUTANTS.values()), later_merge_of_moved_keys_ends)


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not path.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the commit was never reached: {path}")
        time.sleep(0.02)

"""The mechanisms of `guarantees` §2, each with what it takes to turn it off for one order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql.streaming import DataStreamReader

from cdc_lakehouse.bronze import drain, in_place, incarnations
from cdc_lakehouse.lake import file_commit, state
from cdc_lakehouse.lake.delta_transaction import DeltaTransaction
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.silver import look, plan
from cdc_lakehouse.silver.late import anew
from cdc_lakehouse.silver.late.keys import LateEvents
from cdc_lakehouse.silver.work_fold import Folding
from cdc_lakehouse.silver.writing.merge_plan import MergePlan
from crash.silver_guards import SILVER_GUARDS, unfenced  # type: ignore[import-not-found]
from crash.switches import by_merge, nothing, switched  # type: ignore[import-not-found]


def _compare_and_set() -> None:
    """A step may be taken twice."""
    switched(file_commit, "_refuse_unless_next", "compare_and_set", nothing)
    switched(file_commit, "_made", "compare_and_set", nothing)


def _replay_fence() -> None:
    """The same, of a replay: it states what it read, whatever has been committed since."""
    switched(in_place, "fenced_statement", "replay_fence", unfenced)


def _outcome_unknown() -> None:
    """A commit that threw is taken for one that did not happen."""
    switched(file_commit, "_made", "outcome_unknown", nothing)


def _new_checkpoint() -> None:
    """A checkpoint that is there already is gone on with."""
    switched(drain, "refuse_unless_empty", "new_checkpoint", nothing)


def _read_committed() -> None:
    def option(original: Any, reader: Any, key: str, value: Any) -> Any:
        return original(reader, key, "read_uncommitted" if key == "kafka.isolation.level" else value)

    switched(DataStreamReader, "option", "read_committed", option)


def _foreign_commit() -> None:
    """Whoever changed the data: the newest ledger counts."""

    def unseen(original: Any, commits: Any, *, table: str) -> Any:
        return replace(original(commits, table=table), foreign=())

    switched(state, "told_by", "foreign_commit", unseen)


def _incarnation() -> None:
    """A topic that was made again is taken for the one that was read."""
    switched(incarnations, "_recreated", "incarnation", nothing)


def _position_gate() -> None:
    """The event that comes last wins: nobody asks which ones are late."""
    switched(MergePlan, "applies", "position_gate", lambda *_: F.lit(True))
    switched(anew, "late_events", "position_gate", lambda *_, **__: LateEvents())


def _redo() -> None:
    """Silver does not ask which records were decoded again."""
    for module in (plan, look):
        switched(module, "plan_redo", "redo", lambda *_: ())


def _read_again() -> None:
    """Silver does not ask whether bronze still has the rows that it has read."""
    switched(look, "stands_on_other_rows", "read_again", lambda *_, **__: False)


def _refold() -> None:
    """Records that were decoded again are merged as if they had just come."""

    def as_they_came(original: Any, folding: Any, work: Any, facts: Any, *, keys: Any) -> Any:
        return original(folding, work, facts, keys=None)

    switched(Folding, "of", "refold", as_they_came)
    by_merge("refold")


def _scratch_checkpoint() -> None:
    """One checkpoint for all attempts, as usual."""

    def shared(_original: Any, lake: Lake, table: str, _attempt: str) -> str:
        return f"{lake.checkpoints(table)}/{SHARED_CHECKPOINT}"

    switched(Lake, "checkpoint", "scratch_checkpoint", shared)


SHARED_CHECKPOINT = "shared"


def _one_commit() -> None:
    """Data first, the ledger after it; and the process ends between the two."""

    def data_only(
        original: Any, self: Any, files: Any, _versions: Mapping[str, int], *, metadata: str, step: int
    ) -> int:
        original(self, files, {}, metadata="", step=step)
        raise ConnectionAbortedError(f"ended before step {step} was stated: {len(metadata)} bytes")

    switched(DeltaTransaction, "commit", "one_commit", data_only)


GUARDS: dict[str, Callable[[], None]] = {
    "compare_and_set": _compare_and_set,
    "outcome_unknown": _outcome_unknown,
    "new_checkpoint": _new_checkpoint,
    "read_committed": _read_committed,
    "foreign_commit": _foreign_commit,
    "incarnation": _incarnation,
    "position_gate": _position_gate,
    "scratch_checkpoint": _scratch_checkpoint,
    "one_commit": _one_commit,
    "replay_fence": _replay_fence,
    "redo": _redo,
    "read_again": _read_again,
    "refold": _refold,
    **SILVER_GUARDS,
}


def install() -> None:
    """Once per process; an order that turns nothing off passes through."""
    for switch in GUARDS.values():
        switch()

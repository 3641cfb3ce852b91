"""Steps of a table without a ledger: its writers take turns, and each says for which step of silver it wrote.

What such a table holds follows from what its writer has read. So a writer may write only if nobody did since
it read: it numbers its commit one higher than the last, and Delta does nothing for a number that was used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession

from cdc_lakehouse.errors import StorageUnavailableError, SupersededError
from cdc_lakehouse.lake.delta_transaction import DataFile, DeltaTransaction
from cdc_lakehouse.lake.filesystem import delta_options
from cdc_lakehouse.lake.state import STEPS_ID
from cdc_lakehouse.lake.transaction import numbered_statement, proven

_NOTE = "cdc_lakehouse_step"
_FIRST_LOOK = 20


@dataclass(frozen=True, slots=True)
class Standing:
    """A table as its next writer has read it."""

    version: int
    number: int
    """Of its newest step; 0 before the first."""
    attempt: str | None
    silver: int | None
    """The step of silver that the newest step was written for; None where nothing says so."""
    life: str | None = None
    """The life of silver that it was written in (`Cause.life`); None where nothing says so."""
    behind: str | None = None
    """Who wrote the step of silver before that one."""
    made_by: Mapping[str, Any] | None = None
    rules: int = 1
    """Number of the rules by which its rows were made (`Cause.rules`)."""
    decisions: Mapping[str, Any] = field(default_factory=dict)
    """What persons decided for the newest step (`Cause.decisions`)."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What a step is written for."""

    table: str
    silver: int
    """The step of silver."""
    behind: str
    """The attempt that wrote the one before."""
    attempt: str
    life: str
    """Delta's id of silver: one that was deleted and made anew has other rows under the same steps."""
    made_by: Mapping[str, Any] | None = None
    """The settings that chose its columns (`Applied.made_by`)."""
    rules: int = 1
    """Number of the rules of its kind of table: rows that older rules made may have to be replaced."""
    decisions: Mapping[str, Any] = field(default_factory=dict)
    """What a person has decided, signed. A merge that ends a killed one records it in silver's ledger."""


def standing_of(uri: str) -> Standing:
    """The table must be there."""
    try:
        delta = DeltaTable(uri, storage_options=delta_options(uri))
        note = _newest_note(delta)
        number = delta.transaction_version(STEPS_ID) or 0
    except (DeltaError, OSError) as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc
    if note is None or note["number"] != number:
        return Standing(delta.version(), number, attempt=None, silver=None)
    return _standing_of_note(note, version=delta.version())


def standing_at(uri: str, *, silver: int, attempt: str, life: str) -> Standing | None:
    """Return the table as it was when `attempt` committed the step `silver` of silver; None before its first.

    A step that another attempt wrote for the same step of silver lost the race, or came later. Raise
    `LookupError` where the log has forgotten that time.
    """
    try:
        commits = DeltaTable(uri, storage_options=delta_options(uri)).history()
    except (DeltaError, OSError) as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc
    for commit in commits:
        note = _note_in(commit.get("userMetadata") or "")
        if note is None or note.get("life") != life:
            continue
        if note["silver"] < silver or (note["silver"], note["attempt"]) == (silver, attempt):
            return _standing_of_note(note, version=int(commit["version"]))
    if commits and int(commits[-1]["version"]) > 0:
        raise LookupError(f"the log of {uri} has no step of that time any more")
    return None


def _standing_of_note(note: Mapping[str, Any], *, version: int) -> Standing:
    return Standing(
        version,
        note["number"],
        attempt=note["attempt"],
        silver=note["silver"],
        life=note.get("life"),
        behind=note.get("behind"),
        made_by=note.get("made_by"),
        rules=note.get("rules", 1),
        decisions=note.get("decisions", {}),
    )


def commit_step(
    statement: Callable[[], None],
    *,
    session: SparkSession,
    uri: str,
    read: Standing,
    cause: Cause,
) -> None:
    """Run a statement that is right only if the table is as it was `read`.

    A second call does nothing and raises `SupersededError`, unless it is this attempt's own.
    """
    note = _format_note(read, cause)

    def stepped() -> None:
        with numbered_statement(session, STEPS_ID, number=read.number + 1, metadata=note):
            statement()

    _prove_step(stepped, uri, read=read, cause=cause)


def commit_step_files(
    session: SparkSession,
    uri: str,
    files: Sequence[DataFile],
    *,
    removals: Sequence[Mapping[str, Any]] = (),
    read: Standing,
    cause: Cause,
) -> None:
    """Add `files`, and take rows out by `removals`; both are right only if the table is as it was `read`.

    A second call does what a second call of `commit_step` does.
    """

    def step() -> None:
        transaction = DeltaTransaction.start(session, uri)
        is_changed = removals and transaction.read_version != read.version
        if is_changed or (transaction.versions_of([STEPS_ID])[STEPS_ID] or 0) != read.number:
            raise SupersededError(table=cause.table, seq=cause.silver - 1, attempt=cause.attempt)
        number = read.number + 1
        note = _format_note(read, cause)
        transaction.commit(files, {STEPS_ID: number}, metadata=note, step=number, more=removals)

    _prove_step(step, uri, read=read, cause=cause)


def _format_note(read: Standing, cause: Cause) -> str:
    """Return what the commit of the next step says about itself."""
    told = {"silver": cause.silver, "behind": cause.behind, "life": cause.life, "made_by": cause.made_by}
    told["rules"] = cause.rules
    if cause.decisions:
        told["decisions"] = dict(cause.decisions)
    return json.dumps({_NOTE: {"number": read.number + 1, "attempt": cause.attempt, **told}})


def _prove_step(statement: Callable[[], None], uri: str, *, read: Standing, cause: Cause) -> None:
    proven(
        statement,
        look=lambda: standing_of(uri),
        ours=lambda now: (now.number, now.attempt) == (read.number + 1, cause.attempt),
        taken=lambda now: now.number > read.number,
        superseded=SupersededError(table=cause.table, seq=cause.silver - 1, attempt=cause.attempt),
    )


def _newest_note(delta: DeltaTable) -> Mapping[str, Any] | None:
    for most in (_FIRST_LOOK, None):
        for commit in delta.history(most):
            note = _note_in(commit.get("userMetadata") or "")
            if note is not None:
                return note
    return None


def _note_in(metadata: str) -> Mapping[str, Any] | None:
    try:
        document = json.loads(metadata)
    except ValueError:
        return None
    note = document.get(_NOTE) if isinstance(document, dict) else None
    return note if isinstance(note, dict) else None

"""What the commits of a Delta log say about progress: the newest ledger, and what others did behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from cdc_lakehouse.lake.ledger import Ledger

RESTORE = "RESTORE"
KEEPS_THE_DATA = frozenset(
    {
        "CREATE TABLE",
        "OPTIMIZE",
        "REORG",
        "VACUUM START",
        "VACUUM END",
        "SET TBLPROPERTIES",
        "UNSET TBLPROPERTIES",
        "ADD COLUMNS",
        "CHANGE COLUMN",
        "CHANGE COLUMNS",
        "UPGRADE PROTOCOL",
        "ADD FEATURE",
        "CLUSTER BY",
        "COMPUTE STATS",
    }
)

History = Sequence[Mapping[str, Any]]
"""Commits as Delta tells them, newest first."""


@dataclass(frozen=True, slots=True)
class ForeignCommit:
    """Changed data, and no attempt of ours made it."""

    version: int
    operation: str
    restored: int | None = None
    """The version that a RESTORE went back to, where it says so."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a log says of one version."""

    ledger: Ledger | None
    stated: int | None = None
    """The version whose commit states `ledger`."""
    stated_at: datetime | None = None
    """The time of that commit, by the clock of the writer."""
    foreign: tuple[ForeignCommit, ...] = ()
    """Newest first: those behind `stated`, then those that the step does not know (`Applied.follows`)."""


def told_by(commits: History, *, table: str) -> Told:
    foreign: list[ForeignCommit] = []
    told: Told | None = None
    for commit in commits:
        version = _version(commit)
        if told is not None and version <= _follows(told):
            break
        ledger = Ledger.from_json(commit.get("userMetadata") or "", table=table)
        operation = str(commit.get("operation", "unknown"))
        if ledger is None and operation not in KEEPS_THE_DATA:
            foreign.append(ForeignCommit(version, operation, _restored(operation, commit)))
        told = told or (None if ledger is None else Told(ledger, version, _time_of(commit)))
    return replace(told or Told(None), foreign=tuple(foreign))


def tells_enough(commits: History, told: Told) -> bool:
    """Whether the newest `commits` of a log say all that `told_by` wants to know."""
    if told.ledger is None or told.foreign:
        return False
    return not commits or _version(commits[-1]) <= _follows(told) + 1


def _follows(told: Told) -> int:
    """The version behind which the step knows all; a step that does not say so knows what is below it."""
    follows = None if told.ledger is None else told.ledger.applied.follows
    below = -1 if told.stated is None else told.stated - 1
    return below if follows is None else follows


def _version(commit: Mapping[str, Any]) -> int:
    return int(commit.get("version", -1))


def _time_of(commit: Mapping[str, Any]) -> datetime | None:
    milliseconds = commit.get("timestamp")
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)


def restored_by(commits: History, *, table: str) -> Told | None:
    """What the log says of the version whose data the table has again, if a RESTORE is its newest change.

    None where it was something else, or where that version was changed by somebody else as well.
    """
    told = told_by(commits, table=table)
    if not told.foreign or told.foreign[0].restored is None:
        return None
    back = told.foreign[0].restored
    older = [commit for commit in commits if _version(commit) <= back]
    found = told_by(older, table=table)
    return restored_by(older, table=table) if found.foreign else found


def _restored(operation: str, commit: Mapping[str, Any]) -> int | None:
    version = (commit.get("operationParameters") or {}).get("version")
    return int(version) if operation == RESTORE and version is not None else None

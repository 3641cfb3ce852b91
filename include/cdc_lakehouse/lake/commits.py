"""What the commits of a Delta log say about progress: the newest ledger, and what others did behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cdc_lakehouse.lake.ledger import Ledger

RESTORE = "RESTORE"
_KEEPS_THE_DATA = frozenset(
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
    foreign: tuple[ForeignCommit, ...] = ()
    """Newest first, all behind `stated`."""


def told_by(commits: History, *, table: str) -> Told:
    foreign: list[ForeignCommit] = []
    for commit in commits:
        ledger = Ledger.from_json(commit.get("userMetadata") or "", table=table)
        version = int(commit.get("version", -1))
        if ledger is not None:
            return Told(ledger, version, tuple(foreign))
        operation = str(commit.get("operation", "unknown"))
        if operation not in _KEEPS_THE_DATA:
            foreign.append(ForeignCommit(version, operation, _restored(operation, commit)))
    return Told(None, None, tuple(foreign))


def restored_by(commits: History, *, table: str) -> Told | None:
    """What the log says of the version whose data the table has again, if a RESTORE is its newest change.

    None where it was something else, or where that version was changed by somebody else as well.
    """
    told = told_by(commits, table=table)
    if not told.foreign or told.foreign[0].restored is None:
        return None
    back = told.foreign[0].restored
    older = [commit for commit in commits if int(commit.get("version", -1)) <= back]
    found = told_by(older, table=table)
    return restored_by(older, table=table) if found.foreign else found


def _restored(operation: str, commit: Mapping[str, Any]) -> int | None:
    version = (commit.get("operationParameters") or {}).get("version")
    return int(version) if operation == RESTORE and version is not None else None

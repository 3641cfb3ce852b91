"""Read where a table stands from its Delta log, without a JVM."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from cdc_lakehouse.errors import ForeignCommitError, LedgerLostError, StorageUnavailableError
from cdc_lakehouse.lake.ledger import APPLICATION_ID, Ledger

_FIRST_LOOK = 20
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


@dataclass(frozen=True, slots=True)
class TableState:
    """A table at one Delta version. `ledger` is None only before its first commit of data."""

    version: int
    ledger: Ledger | None
    size_bytes: int = 0
    """Of the files that the version consists of."""

    @property
    def seq(self) -> int:
        return 0 if self.ledger is None else self.ledger.seq


def read_state(uri: str, *, table: str) -> TableState | None:
    """Newest version and ledger; None while the table does not exist.

    Raises `ForeignCommitError` when somebody else changed data after our newest commit, and
    `LedgerLostError` when there is data that no commit accounts for.
    """
    try:
        delta = DeltaTable(uri)
        state = _newest_ledger(delta, table=table, limit=_FIRST_LOOK)
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc
    if state.ledger is None and delta.transaction_version(APPLICATION_ID) is not None:
        raise LedgerLostError(table=table, path=uri)
    return state


def _newest_ledger(delta: DeltaTable, *, table: str, limit: int | None) -> TableState:
    version = delta.version()
    commits = delta.history(limit)
    ledger = _search(commits, table=table)
    if ledger is None and limit is not None and len(commits) == limit:
        return _newest_ledger(delta, table=table, limit=None)
    sizes = pa.table(delta.get_add_actions(flatten=True))["size_bytes"].to_pylist()
    return TableState(version=version, ledger=ledger, size_bytes=sum(sizes))


def _search(commits: Iterable[Mapping[str, Any]], *, table: str) -> Ledger | None:
    """`commits` come newest first; what stands before our newest one must have kept the data."""
    for commit in commits:
        ledger = Ledger.from_json(commit.get("userMetadata") or "", table=table)
        if ledger is not None:
            return ledger
        operation = str(commit.get("operation", "unknown"))
        if operation not in _KEEPS_THE_DATA:
            raise ForeignCommitError(table=table, version=int(commit.get("version", -1)), operation=operation)
    return None

"""Delete files that no version within the retention needs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from cdc_lakehouse.lake.names import literal, quoted

_FILES = "delta.deletedFileRetentionDuration"
_LOG = "delta.logRetentionDuration"


_STARTED = "VACUUM START"
_LAST_COMMITS = 10


@dataclass(frozen=True, slots=True)
class Reclaimed:
    """Files that were deleted, and their size in bytes."""

    files: int
    bytes: int


def vacuum(
    session: SparkSession, uri: str, *, retention: timedelta, log_retention: timedelta | None = None
) -> Reclaimed:
    """Delete files that left the table before `retention`. A second call deletes nothing.

    Delta ignores the hours given to VACUUM: what counts is the table's own property, for VACUUM and
    for how far back a reader may go. `log_retention` is for tables whose ledger is stated again.
    """
    table = DeltaTable.forPath(session, uri)
    wanted = {_FILES: f"interval {retention // timedelta(minutes=1)} minutes"}
    if log_retention is not None:
        wanted[_LOG] = f"interval {log_retention // timedelta(days=1)} days"
    properties = table.detail().select("properties").collect()[0]["properties"]
    if any(properties.get(name) != value for name, value in wanted.items()):
        pairs = ", ".join(f"{literal(name)} = {literal(value)}" for name, value in wanted.items())
        session.sql(f"ALTER TABLE {quoted('delta', uri)} SET TBLPROPERTIES ({pairs})")
    table.vacuum()
    return _reclaimed(table)


def _reclaimed(table: DeltaTable) -> Reclaimed:
    """Return what the newest VACUUM says that it deleted."""
    commits = table.history(_LAST_COMMITS).select("operation", "operationMetrics").collect()
    metrics: dict[str, str] = next(
        (row["operationMetrics"] for row in commits if row["operation"] == _STARTED), {}
    )
    return Reclaimed(int(metrics.get("numFilesToDelete", 0)), int(metrics.get("sizeOfDataToDelete", 0)))

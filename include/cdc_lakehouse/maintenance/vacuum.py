"""Delete files that no version within the retention needs."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from datetime import timedelta

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from cdc_lakehouse.lake.names import literal, quoted
from cdc_lakehouse.maintenance.plan import VacuumKind

logger = logging.getLogger(__name__)

_FILES = "delta.deletedFileRetentionDuration"
_LOG = "delta.logRetentionDuration"


_STARTED = "VACUUM START"
_LAST_COMMITS = 10
_LOG_SAYS_TOO_LITTLE = "DELTA_CANNOT_VACUUM_LITE"


@dataclass(frozen=True, slots=True)
class Reclaimed:
    """Files that were deleted, and their size in bytes."""

    files: int
    bytes: int
    kind: VacuumKind = VacuumKind.FULL
    """What was done, which may not be what was asked for."""

    def document(self) -> dict[str, int | str]:
        """Return what the report says of one Delta table."""
        return asdict(self)


def vacuum(
    session: SparkSession,
    uri: str,
    *,
    retention: timedelta,
    kind: VacuumKind = VacuumKind.FULL,
    log_retention: timedelta | None = None,
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
    done = _vacuum_as(kind, session, uri)
    return _reclaimed(table, done)


def _vacuum_as(kind: VacuumKind, session: SparkSession, uri: str) -> VacuumKind:
    """Return the kind that was done: a full one where the log no longer names all files that left."""
    try:
        session.sql(f"VACUUM {quoted('delta', uri)} {kind.upper()}")
    except Exception as exc:
        if kind is VacuumKind.FULL or _LOG_SAYS_TOO_LITTLE not in str(exc):
            raise
        logger.warning("the log does not name all files that left: vacuum in full", extra={"uri": uri})
        return _vacuum_as(VacuumKind.FULL, session, uri)
    return kind


def _reclaimed(table: DeltaTable, kind: VacuumKind) -> Reclaimed:
    """Return what the newest VACUUM says that it deleted."""
    commits = table.history(_LAST_COMMITS).select("operation", "operationMetrics").collect()
    metrics: dict[str, str] = next(
        (row["operationMetrics"] for row in commits if row["operation"] == _STARTED), {}
    )
    return Reclaimed(int(metrics.get("numFilesToDelete", 0)), int(metrics.get("sizeOfDataToDelete", 0)), kind)

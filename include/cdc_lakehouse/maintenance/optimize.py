"""Write small files and files with many hidden rows again. Commits that come meanwhile win."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import deltalake
from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession

from cdc_lakehouse.application.failures import is_conflict
from cdc_lakehouse.errors import StorageUnavailableError
from cdc_lakehouse.lake.filesystem import delta_options
from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.maintenance.plan import PURGE_ABOVE, OptimizePlan

logger = logging.getLogger(__name__)

_TRIES = 3
_SETTINGS = "spark.databricks.delta.optimize"
_PACK = "OPTIMIZE {table}"
_PURGE = "REORG TABLE {table} APPLY (PURGE)"
_OPERATIONS = ("OPTIMIZE", "REORG")


@dataclass(frozen=True, slots=True)
class Packed:
    """What the commits of one OPTIMIZE did together."""

    removed: int = 0
    """Files that left the table."""
    added: int = 0
    """Files that took their place."""
    bytes: int = 0
    """Size of the files that left."""
    commits: int = 0
    gave_way: bool = False
    """Whether commits of others were faster at every try, so that work is left."""


def optimize(session: SparkSession, uri: str, plan: OptimizePlan, *, version: int) -> Packed:
    """Write files again as `plan` says of `version`. Readers see no change; a second call finds no work.

    Packing leaves a file alone that fills its target by itself, whatever it hides: those a purge writes
    again. Each batch is a commit. One that meets another commit is lost, those before it stay, and the
    rest is tried again on the newest version.
    """
    settings = {
        "minFileSize": plan.small_bytes,
        "maxFileSize": plan.target_bytes,
        "batchSize": plan.batch_bytes,
        "maxDeletedRowsRatio": PURGE_ABOVE,
    }
    for name, value in settings.items():
        session.conf.set(f"{_SETTINGS}.{name}", str(value))
    statements = [*([_PURGE] if plan.purges else []), *([_PACK] if plan.packs else [])]
    ends = [_try_until_done(session, uri, statement) for statement in statements]
    return _read_what_was_done(uri, behind=version, gave_way=not all(ends))


def _try_until_done(session: SparkSession, uri: str, statement: str) -> bool:
    """Return whether one of some tries reached its end."""
    return any(_is_done(session, uri, statement) for _ in range(_TRIES))


def _is_done(session: SparkSession, uri: str, statement: str) -> bool:
    """Return whether one try reached the end; False where another commit was faster."""
    try:
        session.sql(statement.format(table=quoted("delta", uri))).collect()
    except Exception as exc:
        if not is_conflict(exc):
            raise
        logger.warning("optimize gave way to another commit", extra={"uri": uri})
        return False
    return True


def _read_what_was_done(uri: str, *, behind: int, gave_way: bool) -> Packed:
    """Sum up the commits of OPTIMIZE: a try that gave way tells nothing of the batches before."""
    try:
        table = deltalake.DeltaTable(uri, storage_options=delta_options(uri))
        newer = table.version() - behind
        commits = table.history(newer) if newer else []
    except (DeltaError, OSError) as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc
    metrics = [
        commit.get("operationMetrics") or {} for commit in commits if commit.get("operation") in _OPERATIONS
    ]
    return Packed(
        removed=sum(int(each.get("numRemovedFiles", 0)) for each in metrics),
        added=sum(int(each.get("numAddedFiles", 0)) for each in metrics),
        bytes=sum(int(each.get("numRemovedBytes", 0)) for each in metrics),
        commits=len(metrics),
        gave_way=gave_way,
    )

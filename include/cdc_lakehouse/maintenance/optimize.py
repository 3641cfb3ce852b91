"""Compact the small files of a table. Whoever writes the table meanwhile wins."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from cdc_lakehouse.application.failures import is_conflict

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Packed:
    """Files that left a table and those that took their place."""

    removed: int
    added: int


def optimize(session: SparkSession, uri: str) -> Packed | None:
    """Pack small files. None where a concurrent commit was faster: the next run does it.

    Readers see no change.
    """
    try:
        metrics = DeltaTable.forPath(session, uri).optimize().executeCompaction().collect()[0]["metrics"]
    except Exception as exc:
        if not is_conflict(exc):
            raise
        logger.warning("optimize gave way to a writer", extra={"uri": uri})
        return None
    return Packed(removed=metrics["numFilesRemoved"], added=metrics["numFilesAdded"])

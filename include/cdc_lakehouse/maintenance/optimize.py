"""Compact the small files of a table. Whoever writes the table meanwhile wins."""

from __future__ import annotations

import logging

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from cdc_lakehouse.application.failures import is_conflict

logger = logging.getLogger(__name__)


def optimize(session: SparkSession, uri: str) -> bool:
    """False when a concurrent commit was faster: skipped, next time again. Readers see no change."""
    try:
        DeltaTable.forPath(session, uri).optimize().executeCompaction()
    except Exception as exc:
        if not is_conflict(exc):
            raise
        logger.warning("optimize gave way to a writer", extra={"uri": uri})
        return False
    return True

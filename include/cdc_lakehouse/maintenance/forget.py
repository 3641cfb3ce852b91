"""Forget where rows were deleted, once nothing that old is expected any more."""

from __future__ import annotations

import logging
from datetime import datetime

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.application.failures import is_conflict

logger = logging.getLogger(__name__)


def forget(session: SparkSession, uri: str, *, before: datetime) -> bool:
    """Tombstones whose delete was committed before that. A second call finds none.

    False when a concurrent commit was faster: skipped, next time again.
    """
    try:
        DeltaTable.forPath(session, uri).delete(F.col("_cdc_commit_ts") < F.lit(before))
    except Exception as exc:
        if not is_conflict(exc):
            raise
        logger.warning("forgetting gave way to a writer", extra={"uri": uri})
        return False
    return True

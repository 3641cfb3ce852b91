"""Delete files that no version within the retention needs."""

from __future__ import annotations

from datetime import timedelta

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

DELTA_FLOOR = timedelta(days=7)
_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


def vacuum(session: SparkSession, uri: str, *, retention: timedelta) -> None:
    """Less than seven days only because the pipeline says so in writing. A second call deletes nothing."""
    if retention < DELTA_FLOOR:
        session.conf.set(_CHECK, "false")
    DeltaTable.forPath(session, uri).vacuum(retention / timedelta(hours=1))

"""Delete files that no version within the retention needs."""

from __future__ import annotations

from datetime import timedelta

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from cdc_lakehouse.lake.names import literal, quoted

_PROPERTY = "delta.deletedFileRetentionDuration"


def vacuum(session: SparkSession, uri: str, *, retention: timedelta) -> None:
    """Less than seven days only because the pipeline says so in writing. A second call deletes nothing.

    Delta ignores the hours given to VACUUM: what counts is the table's own property, for VACUUM and
    for how far back a reader may go.
    """
    table = DeltaTable.forPath(session, uri)
    wanted = f"interval {retention // timedelta(minutes=1)} minutes"
    if table.detail().select("properties").collect()[0]["properties"].get(_PROPERTY) != wanted:
        pair = f"{literal(_PROPERTY)} = {literal(wanted)}"
        session.sql(f"ALTER TABLE {quoted('delta', uri)} SET TBLPROPERTIES ({pair})")
    table.vacuum()

"""Keys that are computed anew from all that bronze holds, to replace what silver has (`architecture` §6).

For events that came late: the position gate takes only what is newer than silver's row, and a late event
may be older than it, or newer than a deletion that left no row.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.lake.names import quoted

REFOLDED = "_cdc_fold_refolded"
"""Column of changes: silver's row of this key is replaced, unless it is newer than all of them."""


def of_keys(events: DataFrame, keys: DataFrame) -> DataFrame:
    return _joined(events, keys, "left_semi")


def but_of_keys(events: DataFrame, keys: DataFrame) -> DataFrame:
    return _joined(events, keys, "left_anti")


def incomplete_keys(session: SparkSession, uri: str, columns: TableColumns) -> DataFrame:
    """Of silver's rows whose values were not all told when they were merged."""
    rows = session.read.format("delta").load(uri).where(F.col("_cdc_incomplete").isNotNull())
    return rows.select(F.struct(*(F.col(quoted(column.name)) for column in columns.key)).alias("key"))


def _joined(events: DataFrame, keys: DataFrame, how: str) -> DataFrame:
    same = F.col("event.key").eqNullSafe(F.col("wanted.key"))
    return events.alias("event").join(keys.alias("wanted"), same, how)

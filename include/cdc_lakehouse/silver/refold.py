"""Compute keys anew from all that bronze holds of them, and replace what silver has (`architecture` §6).

For events that came late: the position gate takes only what is newer than silver's row, and a late event
may be older than it, or newer than a deletion that left no row.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.silver.fold import folded

REFOLDED = "refolded"
"""Column of changes: silver's row of this key is replaced, unless it is newer than all of them."""


def with_refolded(
    events: DataFrame, *, history: DataFrame, keys: DataFrame, columns: TableColumns
) -> DataFrame:
    """Changes of `keys` by all events of `history`, and those of the other keys by `events`."""
    keys = keys.distinct()
    others = folded(_joined(events, keys, "left_anti"), columns)
    own = folded(_joined(history, keys, "left_semi"), columns)
    return others.withColumn(REFOLDED, F.lit(False)).unionByName(own.withColumn(REFOLDED, F.lit(True)))


def _joined(events: DataFrame, keys: DataFrame, how: str) -> DataFrame:
    same = F.col("event.key").eqNullSafe(F.col("wanted.key"))
    return events.alias("event").join(keys.alias("wanted"), same, how)

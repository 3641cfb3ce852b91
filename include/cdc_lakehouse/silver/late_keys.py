"""Keys whose past a merge changes: an event came that is not behind all that silver has applied of its key.

Silver's rows, and the tombstones of those that are gone, say how far it is with a key.
"""

from __future__ import annotations

from collections.abc import Sequence

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.debezium.operations import Operation
from cdc_lakehouse.lake.applied import Reached
from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.lake.place import Place
from cdc_lakehouse.silver.place import PLACE, is_after, literal_place, place_of_row
from cdc_lakehouse.silver.tombstones import not_below

_AT = "_cdc_at"


def late_keys(work: DataFrame, applied: Sequence[DataFrame], *, cleared: Place | None) -> DataFrame:
    """`applied`: keys and places, as `places_in` gives them; what stands before `cleared` is late too."""
    found = []
    for each in applied:
        same = F.col("event.key").eqNullSafe(F.col("applied.key"))
        is_late = ~is_after(F.col(f"event.{PLACE}"), F.col(f"applied.{_AT}"))
        found.append(
            work.alias("event").join(each.alias("applied"), same & is_late, "left_semi").select("key")
        )
    if cleared is not None:
        found.append(work.where(~is_after(F.col(PLACE), literal_place(cleared))).select("key"))
    keys, *others = found
    for each in others:
        keys = keys.unionByName(each)
    return keys


def places_in(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Of silver or its tombstones."""
    at = place_of_row("applied").alias(_AT)
    return rows.alias("applied").select(key_of(keys), at)


def buried(session: SparkSession, uri: str, *, lowest: Reached | None) -> DataFrame | None:
    """Tombstones that an event can be older than, where `lowest` is that of all of them."""
    if lowest is None or not DeltaTable.isDeltaTable(session, uri):
        return None
    return session.read.format("delta").load(uri).where(not_below(lowest))


def unfinished_keys(history: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Of versions that came from another key whose values were not known then."""
    open_ones = F.col("_cdc_incomplete").isNotNull() & (F.col("_cdc_op") == Operation.CREATE)
    return history.where(open_ones).select(key_of(keys))


def key_of(keys: Sequence[str]) -> Column:
    return F.struct(*(F.col(quoted(name)) for name in keys)).alias("key")

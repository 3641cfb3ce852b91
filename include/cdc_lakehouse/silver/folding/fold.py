"""Fold the events of a key to one change (`cdc-semantics` §2, §3, §9), by sums that need no order of rows.

A column's value is the newest that an event tells, unless the row began anew since; where nobody tells it
here, the merge takes what silver has. A changed key begins anew with what the old key had (`carry`).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.debezium.operations import IMAGES, Operation
from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.lake.place import Place, newest
from cdc_lakehouse.silver.folding.place import PLACE, PLACE_TYPE, is_after, literal_place, newest_of

IMAGE_AT = "_cdc_fold_image_at"
"""Column of a change: the place of the event that told its row; null where all were deletes."""
TOLD_AT = "_cdc_fold_told_at"
"""Of each column that some event lacks: the place of the event that told its value; null where none did."""
RESET_AT = "_cdc_fold_reset_at"
"""The place from which on what silver has is not the row's any more; null where that is nowhere."""
MOVED_AT = "_cdc_fold_moved_at"
"""The place of the event by which the row came from another key, lacking values; null where none did."""
GONE = "_cdc_fold_gone"
"""Whether the row is deleted by now."""


def folded(
    events: DataFrame,
    columns: TableColumns,
    *,
    lacking: Sequence[str],
    cleared: Place | None,
    swept: Place | None = None,
) -> DataFrame:
    """One row per key: the source's columns, the system columns, and what the merge decides by.

    `lacking` are columns that an event may not tell; what stood before `cleared` is deleted there.
    Of a key without an event behind `swept` the row is deleted, too; other keys keep their values across it.
    Of a delete only the key's columns are told: `before` holds defaults, not values, under the usual
    replica identity (`cdc-semantics` §1). The row that it ended is told, for tables that keep deleted rows.
    """
    is_image = F.col("op").isin(*IMAGES)
    last = F.struct("op", PLACE, F.col("source.ts").alias("ts"))
    by_key = events.groupBy("key").agg(
        F.max_by(last, _POSITION).alias("last"),
        F.max_by(F.struct("after", PLACE), F.when(is_image, F.col(_POSITION))).alias("image"),
        *(_resets() if lacking else ()),
        *(_told(name).alias(_told_name(name)) for name in lacking),
    )
    gone_before = newest(cleared, swept)
    return _changes(by_key, columns, lacking=lacking, cleared=cleared, gone_before=gone_before)


_POSITION = f"{PLACE}.position"


def _resets() -> tuple[Column, Column]:
    """Where the row began anew: behind its delete, or as another key."""
    is_delete = F.col("op") == Operation.DELETE
    # Only the create of a changed key lacks values.
    is_move = (F.col("op") == Operation.CREATE) & (F.size("unavailable") > 0)
    return (
        F.max_by(PLACE, F.when(is_delete, F.col(_POSITION))).alias("deleted_at"),
        F.max_by(PLACE, F.when(is_move, F.col(_POSITION))).alias("moved_at"),
    )


def _told(name: str) -> Column:
    lacks = F.coalesce(F.array_contains("unavailable", name), F.lit(False))
    tells = F.col("op").isin(*IMAGES) & ~lacks
    return F.max_by(
        F.struct(F.col("after").getField(name).alias("value"), PLACE), F.when(tells, F.col(_POSITION))
    )


def _told_name(name: str) -> str:
    return f"told {name}"


def _changes(
    by_key: DataFrame,
    columns: TableColumns,
    *,
    lacking: Sequence[str],
    cleared: Place | None,
    gone_before: Place | None,
) -> DataFrame:
    last, image_at = F.col("last"), F.col(f"image.{PLACE}")
    is_delete = last["op"] == Operation.DELETE
    is_cleared = F.lit(False)
    if gone_before is not None:
        is_cleared = is_after(literal_place(gone_before), last[PLACE])
    keys = {column.name for column in columns.key}
    told = {name: F.col(quoted(_told_name(name))) for name in lacking}

    def value(name: str) -> Column:
        if name in keys:
            return F.col("key").getField(name)
        if name in told:
            return F.when(~is_after(F.col(RESET_AT), told[name][PLACE]), told[name]["value"])
        return F.col("image.after").getField(name)

    def told_at(name: str) -> Column:
        return F.when(~is_after(F.col(RESET_AT), told[name][PLACE]), told[name][PLACE]).alias(name)

    reset = _reset_at(image_at, is_delete=is_delete, lacking=lacking, cleared=cleared)
    moved = F.col("moved_at") if lacking else _nowhere()
    return by_key.withColumn(RESET_AT, reset).select(
        *(value(column.name).alias(column.name) for column in columns.row),
        F.when(is_cleared & ~is_delete, F.lit(Operation.TRUNCATE.value))
        .otherwise(last["op"])
        .alias("_cdc_op"),
        last[PLACE]["position"].alias("_cdc_position"),
        last[PLACE]["tx_id"].alias("_cdc_tx_id"),
        last["ts"].alias("_cdc_commit_ts"),
        image_at.alias(IMAGE_AT),
        *([F.struct(*(told_at(name) for name in lacking)).alias(TOLD_AT)] if lacking else []),
        F.col(RESET_AT),
        F.when(~is_after(F.col(RESET_AT), moved), moved).alias(MOVED_AT),
        (is_delete | is_cleared).alias(GONE),
    )


def _nowhere() -> Column:
    return F.lit(None).cast(PLACE_TYPE)


def _reset_at(
    image_at: Column, *, is_delete: Column, lacking: Sequence[str], cleared: Place | None
) -> Column:
    """The newest of them below the row's image."""
    places = [F.when(~is_delete, F.col("deleted_at")), F.col("moved_at")] if lacking else []
    if cleared is not None:
        at = literal_place(cleared)
        places.append(F.when(is_after(image_at, at), at))
    return newest_of(*places) if places else _nowhere()

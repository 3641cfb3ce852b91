"""The places at which all rows of a table ended, as bronze tells them: truncates, repeated snapshots.

Silver needs the newest one only (`folding.clearing`); a history needs to know which came first behind a row.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.debezium.operations import Operation
from cdc_lakehouse.lake.place import Place
from cdc_lakehouse.silver.examine import SNAPSHOT_ENDS
from cdc_lakehouse.silver.folding.place import (
    PLACE,
    PLACE_TYPE,
    SOURCE_EPOCH,
    is_after,
    literal_place,
    place_of_event,
)

ENDINGS = "_cdc_step_endings"
"""Column: all of them, each a place and its commit time."""
TS = "ts"


def endings_in(rows: DataFrame, *, cleared: Place) -> DataFrame:
    """One row: the column `ENDINGS`. `rows` are all of bronze.

    A snapshot takes away what it lacks at the beginning of its epoch. Which ones do, silver has decided
    (`folding.clearing`): one behind the newest of them, at `cleared`, may have rows that bronze does not hold
    yet, or be of one topic of several.
    """
    decoded = rows.where(F.col("decode_error").isNull())
    truncates = decoded.where(F.col("op") == Operation.TRUNCATE).select(
        place_of_event().alias(PLACE), F.col("source.ts").alias(TS)
    )
    found = truncates.unionByName(_of_snapshots(decoded))
    found = found.where(~is_after(F.col(PLACE), literal_place(cleared)))
    return found.agg(F.collect_set(F.struct(PLACE, TS)).alias(ENDINGS))


def _of_snapshots(decoded: DataFrame) -> DataFrame:
    is_end = F.col("source.snapshot").isin(*SNAPSHOT_ENDS)
    read = decoded.where((F.col("position.phase") == 0) & (F.col("op") != Operation.TRUNCATE))
    snapshots = read.groupBy("source.tx_id").agg(
        F.min(SOURCE_EPOCH).alias("epoch"),
        F.min(F.when(is_end, F.col("source.ts"))).alias(TS),
        F.max(is_end).alias("ended"),
    )
    wanted = F.col("ended") & (F.col("epoch") > 0)
    return snapshots.where(wanted).select(_beginning().alias(PLACE), TS)


def _beginning() -> Column:
    place = literal_place(Place.beginning_of(0))
    position = place["position"].withField("epoch", F.col("epoch"))
    return F.struct(position.alias("position"), F.col("tx_id").alias("tx_id"))


def first_ending(begun: Column, until: Column) -> Column:
    """Of `ENDINGS` the first behind the place `begun` and before the place `until`, which may be null.

    The row of a repeated snapshot ends its predecessor itself: it was not missing from that snapshot.
    """

    def counts(ending: Column) -> Column:
        at = ending[PLACE]
        of_snapshot = at["position"]["phase"] == 0
        repeated = of_snapshot & (until["position"]["phase"] == 0) & (at["tx_id"] == until["tx_id"])
        before = until.isNull() | is_after(until, at)
        return is_after(at, begun) & before & ~F.coalesce(repeated, F.lit(False))

    return F.array_min(F.filter(F.col(ENDINGS), counts))


def new_endings(endings: DataFrame, *, before: Place | None) -> DataFrame:
    """Return `endings` without snapshots that were complete when the table was cleared up to `before`.

    A version continues across a snapshot that read its row unchanged. A later merge, which does not see that
    read, must not end it there.
    """
    if before is None:
        return endings

    def is_new(ending: Column) -> Column:
        at = ending[PLACE]
        return (at["position"]["phase"] > 0) | is_after(at, literal_place(before))

    return endings.select(F.filter(ENDINGS, is_new).alias(ENDINGS))


def no_endings(session: SparkSession) -> DataFrame:
    """As `endings_in` gives them out."""
    none = F.array().cast(f"array<struct<{PLACE}: {PLACE_TYPE}, {TS}: timestamp>>")
    return session.range(1).select(none.alias(ENDINGS))

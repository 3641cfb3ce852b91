"""The places at which rows of a table ended beside their own events: truncates and repeated snapshots, which
bronze tells, and sweeps, which silver's ledger tells.

Silver needs the newest one only (`folding.clearing`); a history needs to know which came first behind a row.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.debezium.operations import Operation
from cdc_lakehouse.lake.applied import Applied, Sweep
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


def endings_in(rows: DataFrame, *, cleared: Place | None, sweeps: Sequence[Sweep] = ()) -> DataFrame:
    """One row: the column `ENDINGS`. `rows` are all of bronze, `sweeps` are not told there.

    A snapshot takes away what it lacks at the beginning of its epoch. Which ones do, silver has decided
    (`folding.clearing`): one behind the newest of them, at `cleared`, may have rows that bronze does not hold
    yet, or be of one topic of several.
    """
    if cleared is None:
        return _with_sweeps(no_endings(rows.sparkSession), sweeps)
    decoded = rows.where(F.col("decode_error").isNull())
    truncates = decoded.where(F.col("op") == Operation.TRUNCATE).select(
        place_of_event().alias(PLACE), F.col("source.ts").alias(TS)
    )
    found = truncates.unionByName(_of_snapshots(decoded))
    found = found.where(~is_after(F.col(PLACE), literal_place(cleared)))
    return _with_sweeps(found.agg(F.collect_set(F.struct(PLACE, TS)).alias(ENDINGS)), sweeps)


def _with_sweeps(endings: DataFrame, sweeps: Sequence[Sweep]) -> DataFrame:
    if not sweeps:
        return endings
    decided = [
        F.struct(literal_place(sweep.place).alias(PLACE), F.lit(sweep.at).cast("timestamp").alias(TS))
        for sweep in sweeps
    ]
    return endings.select(F.array_union(F.col(ENDINGS), F.array(*decided)).alias(ENDINGS))


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


def first_ending(begun: Column, until: Column, *, is_created: Column | None = None) -> Column:
    """Of `ENDINGS` the first behind the place `begun` and before the place `until`, which may be null.

    The row of a repeated snapshot ends its predecessor itself: it was not missing from that snapshot.
    A sweep ends only what nothing follows, or what is followed by an event that creates the row
    (`is_created`): any other event shows that the row was still there.
    """
    is_missing = until.isNull() | (
        F.lit(False) if is_created is None else F.coalesce(is_created, F.lit(False))
    )

    def counts(ending: Column) -> Column:
        at = ending[PLACE]
        of_snapshot = at["position"]["phase"] == 0
        repeated = of_snapshot & (until["position"]["phase"] == 0) & (at["tx_id"] == until["tx_id"])
        before = until.isNull() | is_after(until, at)
        ends = ~_is_sweep(at) | is_missing
        return is_after(at, begun) & before & ends & ~F.coalesce(repeated, F.lit(False))

    return F.array_min(F.filter(F.col(ENDINGS), counts))


def _is_sweep(at: Column) -> Column:
    """Return whether an ending is a sweep: truncates are streamed, and snapshots begin with phase 0."""
    return (at["position"]["phase"] > 0) & (at["position"]["streamed"] == 0)


def new_endings(endings: DataFrame, *, before: Applied) -> DataFrame:
    """Return `endings` without sweeps, and snapshots that were complete, that silver had applied `before`.

    A version continues across a snapshot that read its row unchanged. A later merge, which does not see that
    read, must not end it there.
    """

    def is_behind(at: Column, place: Place | None) -> Column:
        return F.lit(True) if place is None else is_after(at, literal_place(place))

    def is_new(ending: Column) -> Column:
        at = ending[PLACE]
        truncated = (at["position"]["phase"] > 0) & (at["position"]["streamed"] > 0)
        applied = F.when(_is_sweep(at), is_behind(at, before.swept)).otherwise(is_behind(at, before.cleared))
        return truncated | applied

    return endings.select(F.filter(ENDINGS, is_new).alias(ENDINGS))


def no_endings(session: SparkSession) -> DataFrame:
    """As `endings_in` gives them out."""
    none = F.array().cast(f"array<struct<{PLACE}: {PLACE_TYPE}, {TS}: timestamp>>")
    return session.range(1).select(none.alias(ENDINGS))

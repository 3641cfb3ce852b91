"""Events that silver does not apply because it has newer ones: each is counted, and explained (rule 2.7).

Nothing is read for it unless an event of the work is not above all that silver has applied, or bronze saw a
partition turn back within the work.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.errors import SourceWentBackError
from cdc_lakehouse.lake.applied import Applied, Reached
from cdc_lakehouse.lake.ledger import Ledger, Ranges
from cdc_lakehouse.lake.names import Lake, quoted
from cdc_lakehouse.lake.tables import schema_of
from cdc_lakehouse.lake.turned_back import turns, unknown_below
from cdc_lakehouse.silver.examine import WorkFacts
from cdc_lakehouse.silver.place import PLACE, is_after, literal_place, place_of_row
from cdc_lakehouse.silver.tombstones import not_below


def may_have_gone_back(facts: WorkFacts, *, before: Applied, held: Ledger, work: Ranges) -> bool:
    """Also where bronze saw a partition turn back within `work` and go on until it was above again.

    An event that names the very commit that silver has reached is usually of a transaction that was cut.
    """
    turned = any(
        (at := held.sources[source][partition].turned) is not None and start <= at < end
        for source, partitions in work.items()
        for partition, (start, end) in partitions.items()
    )
    lowest, reached = facts.lowest, before.reached
    is_below = lowest is not None and reached is not None and lowest < reached
    return turned or facts.turned_back or is_below


def refuse_what_went_back(history: DataFrame, *, held: Ledger, work: Ranges) -> None:
    """Raise where new events stand below older ones: silver would refuse them for ever, under a green run.

    What came late, or was decoded again, is not in `work`, and may be as old as it likes.
    """
    found = turns(history, held=held, work=work)
    if not found:
        return
    first = min(found, key=lambda turn: turn.since or 0)
    raise SourceWentBackError(
        table=held.table,
        count=sum(turn.events for turn in found),
        coordinate=first.coordinate,
        position=_words(first.position),
        highest=_words(first.highest),
        epoch=held.epoch,
        doubt=_doubt(unknown_below(history, found, held=held)),
    )


def count_refused(
    session: SparkSession,
    lake: Lake,
    events: DataFrame,
    columns: TableColumns,
    *,
    facts: WorkFacts,
    before: Ledger,
) -> int:
    """Of the work's `events`: those not newer than their row in silver, its delete, or the last truncate."""
    lowest, applied = facts.lowest, before.applied
    if lowest is None or applied.reached is None or lowest > applied.reached:
        return 0
    old = events.where(_up_to(applied.reached)).select("key", PLACE).alias("event")
    at, refused = F.col(f"event.{PLACE}"), F.lit(False)
    if applied.cleared is not None:
        refused |= is_after(literal_place(applied.cleared), at)
    rows = _newest(session, lake.silver(before.table), columns, lowest=lowest)
    if rows is not None:
        old = _beside(old, rows, "row")
        refused |= F.col("row.place").isNotNull() & ~is_after(at, F.col("row.place"))
    dead = _newest(session, lake.tombstones(before.table), columns, lowest=lowest)
    if dead is not None:
        old = _beside(old, dead, "dead")
        refused |= is_after(F.col("dead.place"), at)
    found: int = old.where(refused).count()
    return found


def _up_to(reached: Reached) -> Column:
    epoch, commit = reached
    position = F.col(f"{PLACE}.position")
    return (position["epoch"] < epoch) | ((position["epoch"] == epoch) & (position["commit"] <= commit))


def _newest(session: SparkSession, uri: str, columns: TableColumns, *, lowest: Reached) -> DataFrame | None:
    """The newest place of each key; what stands below `lowest` refuses nothing. None without a table."""
    if schema_of(session, uri) is None:
        return None
    rows = session.read.format("delta").load(uri).where(not_below(lowest)).alias("own")
    key = F.struct(*(F.col(quoted(column.name)) for column in columns.key)).alias("key")
    places = rows.select(key, place_of_row("own").alias("place"))
    return places.groupBy("key").agg(F.max("place").alias("place"))


def _beside(events: DataFrame, places: DataFrame, name: str) -> DataFrame:
    same = F.col("event.key").eqNullSafe(F.col(f"{name}.key"))
    return events.join(places.alias(name), same, "left")


def _doubt(unknown: int) -> str:
    if not unknown:
        return ""
    return (
        f"; {unknown} record(s) before them are missing or could not be decoded, and may have been the same"
    )


def _words(place: tuple[int, int]) -> str:
    commit, row = place
    return f"row {row} behind commit {commit}"

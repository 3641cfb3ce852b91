"""Events of a merge's work that are not behind all that silver has of their key, and whose keys these are.

Silver's rows, and the tombstones of those that are gone, say how far it is with a key. Neither is read unless
an event of the work may be that old.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.debezium.operations import Operation
from cdc_lakehouse.lake.applied import Applied, Reached
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.place import Place
from cdc_lakehouse.lake.tables import schema_of
from cdc_lakehouse.silver.examine import WorkFacts
from cdc_lakehouse.silver.folding.place import PLACE, is_after, literal_place, place_of_row
from cdc_lakehouse.silver.folding.row_key import key_in_types_of, key_of
from cdc_lakehouse.silver.writing.tombstones import not_below


@dataclass(frozen=True, slots=True)
class LateEvents:
    refused: int = 0
    """Those not newer than their row in silver, its delete, or the last truncate (rule 2.7)."""
    keys: DataFrame | None = None
    """The past of these changes, also by an event that is sent again; None where that of no key does."""


def late_events(
    session: SparkSession,
    lake: Lake,
    events: DataFrame,
    columns: TableColumns,
    *,
    facts: WorkFacts,
    before: Ledger,
) -> LateEvents:
    """`events` are those of the work that `facts` are about; one look at the keys of silver, or none."""
    if facts.lowest is None or not facts.may_be_old(before.applied):
        return LateEvents()
    lowest = (facts.lowest[0], 0) if facts.snapshot_rows else facts.lowest
    old = events.where(_may_be_old(before.applied)).select("key", PLACE).alias("event")
    at = F.col(f"event.{PLACE}")
    late = refused = _is_cleared(at, before.applied)
    for name, uri in (("row", lake.silver(before.table)), ("dead", lake.tombstones(before.table))):
        places = _newest(session, uri, columns, lowest=lowest)
        if places is None:
            continue
        known = F.col(f"{name}.{PLACE}")
        same = F.col("event.key").eqNullSafe(F.col(f"{name}.key"))
        old = old.join(places.alias(name), same, "left")
        is_late = known.isNotNull() & ~is_after(at, known)
        late |= is_late
        # The very delete that is buried may not be in silver: an attempt can be killed between the two.
        refused |= is_late if name == "row" else is_after(known, at)
    counts = old.agg(F.count_if(refused), F.count_if(late)).collect()[0]
    if not counts[1]:
        return LateEvents(refused=counts[0])
    return LateEvents(counts[0], old.where(late).select("event.key").distinct().localCheckpoint())


def keys_behind(
    session: SparkSession, lake: Lake, columns: TableColumns, *, truncated: Place, before: Ledger
) -> list[DataFrame]:
    """Whose row, or delete, silver has from behind a truncate that it reads only now: a version may cross it.

    Nothing is read for a truncate above all that silver has applied.
    """
    top, at = before.applied.top, (truncated.position[0], truncated.position[2])
    if top is None or at > top:
        return []
    uris = (lake.silver(before.table), lake.tombstones(before.table))
    known = [_newest(session, uri, columns, lowest=at) for uri in uris]
    is_behind = is_after(F.col(PLACE), literal_place(truncated))
    return [places.where(is_behind).select("key") for places in known if places is not None]


def _may_be_old(applied: Applied) -> Column:
    """Of an event: as `WorkFacts.may_be_old` says it of all of them."""
    if applied.top is None or applied.top[1] == 0:
        return F.lit(True)
    epoch, commit = applied.top
    position = F.col(f"{PLACE}.position")
    is_above = (position["epoch"] == epoch) & (position["commit"] > commit) & (position["phase"] > 0)
    return (position["epoch"] <= epoch) & ~is_above


def _is_cleared(at: Column, applied: Applied) -> Column:
    gone = applied.gone_before
    return F.lit(False) if gone is None else is_after(literal_place(gone), at)


def _newest(session: SparkSession, uri: str, columns: TableColumns, *, lowest: Reached) -> DataFrame | None:
    """The newest place of each key; what stands below `lowest` makes no event late. None without a table."""
    if schema_of(session, uri) is None:
        return None
    rows = session.read.format("delta").load(uri).where(not_below(lowest)).alias("own")
    places = rows.select(key_in_types_of(columns.key), place_of_row("own").alias(PLACE))
    return places.groupBy("key").agg(F.max(PLACE).alias(PLACE))


def unfinished_keys(history: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Of versions that came from another key whose values were not known then."""
    open_ones = F.col("_cdc_incomplete").isNotNull() & (F.col("_cdc_op") == Operation.CREATE)
    return history.where(open_ones).select(key_of(keys))

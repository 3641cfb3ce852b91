"""Places in the source's order as Spark compares them (`cdc-semantics` §2; twin of `lake.place`)."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from cdc_lakehouse.debezium.bronze import POSITION_FIELDS
from cdc_lakehouse.lake.place import Place

SOURCE_EPOCH = "source_epoch"
"""The column of work rows that the bronze ledger knows and the record does not (rule 2.5)."""
PLACE = "place"
"""Column of an event: its position and its transaction."""

_FIELDS = ("epoch", *POSITION_FIELDS)
_BEHIND_COMMIT = ("streamed", "row", "order_in_tx", "kind")
POSITION_TYPE = f"struct<{', '.join(f'{field}: bigint' for field in _FIELDS)}>"
PLACE_TYPE = f"struct<position: {POSITION_TYPE}, tx_id: bigint>"


def place_of_event() -> Column:
    """Of a bronze row; null where it has none."""
    epoch = F.col(SOURCE_EPOCH).alias("epoch")
    position = F.struct(epoch, *(F.col(f"position.{field}").alias(field) for field in POSITION_FIELDS))
    return F.when(F.col("position").isNotNull(), place(position, F.col("source.tx_id")))


def place(position: Column, tx_id: Column) -> Column:
    return F.struct(position.alias("position"), tx_id.alias("tx_id"))


def place_of_row(table: str) -> Column:
    """Of a row of silver or of its tombstones, under the alias of its table."""
    return place(F.col(f"{table}._cdc_position"), F.col(f"{table}._cdc_tx_id"))


def literal_place(of: Place) -> Column:
    numbers = zip(_FIELDS, of.position, strict=True)
    position = F.struct(*(F.lit(number).cast("bigint").alias(field) for field, number in numbers))
    return place(position, F.lit(of.tx_id).cast("bigint"))


def is_after(one: Column, other: Column) -> Column:
    """False where one of them is null. Within a transaction the commit before it does not count."""
    a, b = one["position"], other["position"]
    same = (a["epoch"] == b["epoch"]) & (a["phase"] == b["phase"]) & (one["tx_id"] == other["tx_id"])
    behind = F.struct(*(a[field] for field in _BEHIND_COMMIT)) > F.struct(
        *(b[field] for field in _BEHIND_COMMIT)
    )
    return F.coalesce(F.when(same, behind).otherwise(a > b), F.lit(False))


def is_same_in_log(one: Column, other: Column) -> Column:
    """Whether two events are of one change of a row: the delete and the create of a changed key."""
    a, b = one["position"], other["position"]
    same = F.struct(a["epoch"], a["row"]) == F.struct(b["epoch"], b["row"])
    return one["tx_id"].eqNullSafe(other["tx_id"]) & same


def with_commit(place_: Column, commit: Column) -> Column:
    """The same place behind another commit, where one is given."""
    position = place_["position"]
    # No event is without an epoch, and silver's column says so: Spark must see that none is here.
    told = {
        "epoch": F.coalesce(position["epoch"], F.lit(0)),
        "commit": F.coalesce(commit, position["commit"]),
    }
    fields = [told.get(field, position[field]).alias(field) for field in _FIELDS]
    return place(F.struct(*fields), place_["tx_id"])


def newest_of(*places: Column) -> Column:
    """Null where all are."""
    newest, *others = places
    for each in others:
        newest = F.when(newest.isNull() | is_after(each, newest), each).otherwise(newest)
    return newest

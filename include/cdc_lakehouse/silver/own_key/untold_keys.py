"""Events that do not tell the key which the table names (decision 0034): silver stops before it is wrong."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.debezium.operations import IMAGES, Operation
from cdc_lakehouse.errors import KeyNotToldError
from cdc_lakehouse.lake.place import Place
from cdc_lakehouse.silver.folding.place import is_after, literal_place, place_of_event
from cdc_lakehouse.silver.own_key.key_columns import OwnKey
from cdc_lakehouse.silver.own_key.whole_before import shows_row
from cdc_lakehouse.silver.read import ROW_OPS

_IS_NULL, _NOT_SENT, _NOT_BEFORE = "it is NULL", "its value was not sent", "`before` does not show it"


def refuse_untold(rows: DataFrame, own: OwnKey, *, table: str, cleared: Place | None, archives: str) -> None:
    """Raises for events of `rows`, of bronze as they came. What stands before `cleared` is gone anyway."""
    told = rows.where(F.col("decode_error").isNull() & F.col("op").isin(ROW_OPS))
    if cleared is not None:
        told = told.where(is_after(place_of_event(), literal_place(cleared)))
    fault = _of_message(own) if own.is_sent else _of_row(told, own, archives=archives)
    first = F.min(F.struct("topic", "partition", "offset", fault.alias("fault")))
    found = told.where(fault.isNotNull()).agg(F.count(F.lit(1)).alias("count"), first.alias("first"))
    row = found.collect()[0]
    if row["count"]:
        coordinate = "{topic}/{partition}@{offset}".format(**row["first"].asDict())
        column, why = row["first"]["fault"]
        raise KeyNotToldError(table=table, column=column, count=row["count"], why=why, coordinate=coordinate)


def _of_message(own: OwnKey) -> Column:
    return F.coalesce(*(_fault(name, F.col("key").getField(name).isNull(), _IS_NULL) for name in own.names))


def _of_row(rows: DataFrame, own: OwnKey, *, archives: str) -> Column:
    has_after, has_before = (
        F.col("op").isin(*operations)
        for operations in (
            IMAGES,
            (Operation.UPDATE, Operation.DELETE),
        )
    )
    after, before = F.col("after"), F.col("before")
    has_message_key = F.col("key").isNotNull() if own.bronze.key else F.lit(False)
    faults = []
    for name in own.names:
        unsent = F.coalesce(F.array_contains("unavailable", name), F.lit(False))
        faults.append(_fault(name, has_after & unsent, _NOT_SENT))
        faults.append(_fault(name, has_after & after.getField(name).isNull(), _IS_NULL))
        why = F.when(before.isNotNull() & ~has_message_key, F.lit(_IS_NULL)).otherwise(F.lit(_NOT_BEFORE))
        faults.append(_fault(name, has_before & before.getField(name).isNull(), why))
    keyed = rows.where(has_before & has_message_key)
    hidden = next(name for name in own.names if name in {each.name for each in own.beside_message_key})
    shown = shows_row(keyed, own.beside_message_key, archives=archives) if own.bronze.key else F.lit(True)
    faults.append(_fault(hidden, has_before & has_message_key & ~shown, _NOT_BEFORE))
    return F.coalesce(*faults)


def _fault(name: str, condition: Column, why: Column | str) -> Column:
    reason = F.lit(why) if isinstance(why, str) else why
    return F.when(condition, F.struct(F.lit(name).alias("column"), reason.alias("why")))

"""Keys with a record that could not be decoded: their later events wait (`on_quarantine: hold`)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.errors import UnknownKeyHeldError
from cdc_lakehouse.lake.cases import waits

_PLACE = ("topic", "partition", "topic_id")


def waiting(rows: DataFrame, *, table: str) -> DataFrame:
    """Keys that wait for a record of `rows`, and from which coordinate on.

    Raises where not even the key of a record is known: then nobody knows which one waits.
    """
    cases = rows.where(waits(rows))
    unknown = cases.where(F.col("key").isNull()).agg(
        F.count(F.lit(1)).alias("count"), F.min(F.struct("topic", "partition", "offset")).alias("first")
    )
    found = unknown.collect()[0]
    if found["count"]:
        first = "{topic}/{partition}@{offset}".format(**found["first"].asDict())
        raise UnknownKeyHeldError(table=table, count=found["count"], first=first)
    return cases.groupBy("key", *_PLACE).agg(F.min("offset").alias("offset"))


def without_waiting(rows: DataFrame, waiting: DataFrame) -> DataFrame:
    """Rows but those behind a record that their key waits for: in another partition, all of them."""
    behind = ~_same_place() | (F.col("row.offset") > F.col("case.offset"))
    return rows.alias("row").join(waiting.alias("case"), _same_key() & behind, "left_anti")


def _same_key() -> Column:
    return F.col("row.key").eqNullSafe(F.col("case.key"))


def _same_place() -> Column:
    same = F.lit(True)
    for name in _PLACE:
        same &= F.col(f"row.{name}").eqNullSafe(F.col(f"case.{name}"))
    return same

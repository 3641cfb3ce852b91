"""Give bronze's rows the key that the table names (decision 0034): what `key_columns` says, in Spark.

From here on they look as if Kafka's message key had been made of these columns.
"""

from __future__ import annotations

from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.debezium.operations import Operation
from cdc_lakehouse.silver.own_key.key_columns import OwnKey
from cdc_lakehouse.silver.read import HALF, ROW_OPS

_LEAVES, _COMES = str(Operation.DELETE), str(Operation.CREATE)


def rekeyed(rows: DataFrame, own: OwnKey | None) -> DataFrame:
    """`rows` of bronze with this key; null in an event that does not tell all of it.

    An update that changes it becomes what Debezium sends where the message key changes: a delete of the old
    row and a create of the new one, at one place of the log.
    """
    if own is None:
        return rows
    if own.is_sent:
        return rows.withColumn("key", _key("key", own)).withColumn(HALF, F.lit(None).cast("string"))
    before, after = _key("before", own), _key("after", own)
    moves = (F.col("op") == Operation.UPDATE) & before.isNotNull() & after.isNotNull() & (before != after)
    halves = F.when(moves, F.array(F.lit(_LEAVES), F.lit(_COMES))).otherwise(F.array(F.lit(None)))
    split = rows.withColumn(HALF, F.explode(halves))
    leaves = F.coalesce(F.col(HALF) == _LEAVES, F.lit(False))
    op, kind = F.coalesce(HALF, "op"), F.when(leaves, F.lit(0).cast("bigint"))
    columns = {
        "op": op,
        "key": F.when(op == Operation.DELETE, before).otherwise(after),
        "before": F.when(F.col(HALF).isNull() | leaves, F.col("before")),
        "after": F.when(~leaves, F.col("after")),
        "unavailable": F.when(~leaves, F.col("unavailable")),
        "position": F.col("position").withField("kind", F.coalesce(kind, F.col("position.kind"))),
    }
    return split.withColumns(columns)


def with_told_keys(rows: DataFrame) -> DataFrame:
    """Without events of rows that do not tell the key: where they matter, silver has stopped before."""
    is_row = F.col("decode_error").isNull() & F.col("op").isin(ROW_OPS)
    return rows.where(~F.coalesce(is_row, F.lit(False)) | F.col("key").isNotNull())


def _key(side: str, own: OwnKey) -> Column:
    """Null where a part of it is."""
    values = [F.col(side).getField(name) for name in own.names]
    told = reduce(and_, (value.isNotNull() for value in values))
    if side == "after":
        unsent = F.arrays_overlap("unavailable", F.array(*(F.lit(name) for name in own.names)))
        told &= ~F.coalesce(unsent, F.lit(False))
    return F.when(told, F.struct(*(v.alias(name) for v, name in zip(values, own.names, strict=True))))

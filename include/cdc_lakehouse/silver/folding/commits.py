"""One commit per transaction: one that is sent again may name another commit before it (rule 2.2)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.silver.folding.place import PLACE, with_commit

_TRANSACTION = ("topic", "epoch", "phase", "tx_id")
"""Numbers of transactions of two servers that share a table may be the same."""
_OF = "topic string, epoch bigint, phase bigint, tx_id bigint, commit bigint"


def recommitted(events: DataFrame) -> tuple[Row, ...]:
    """(topic, epoch, phase, tx_id, smallest commit) of the transactions that name several."""
    position = F.col(f"{PLACE}.position")
    commits = events.groupBy("topic", position["epoch"], position["phase"], F.col(f"{PLACE}.tx_id")).agg(
        F.min(position["commit"]).alias("commit"), F.max(position["commit"]).alias("highest")
    )
    again = commits.toDF(*_TRANSACTION, "commit", "highest").where(F.col("commit") < F.col("highest"))
    return tuple(again.where(F.col("tx_id").isNotNull()).drop("highest").collect())


def with_one_commit(events: DataFrame, transactions: Sequence[Row]) -> DataFrame:
    """`events` of these transactions stand behind the smallest commit that any of them names."""
    if not transactions:
        return events
    smallest = F.broadcast(events.sparkSession.createDataFrame(list(transactions), _OF)).alias("smallest")
    joined = events.alias("event").join(smallest, _same_transaction(), "left")
    place = with_commit(F.col(f"event.{PLACE}"), F.col("smallest.commit")).alias(PLACE)
    others = [F.col(f"event.{quoted(name)}") for name in events.columns if name != PLACE]
    return joined.select(*others, place)


def _same_transaction() -> Column:
    place = F.col(f"event.{PLACE}")
    same = (F.col("event.topic") == F.col("smallest.topic")) & (place["tx_id"] == F.col("smallest.tx_id"))
    for field in ("epoch", "phase"):
        same &= place["position"][field] == F.col(f"smallest.{field}")
    return same

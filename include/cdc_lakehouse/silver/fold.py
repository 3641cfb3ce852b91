"""Fold the events of a batch to one change per key: the newest by position (`cdc-semantics` §2)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.debezium.bronze import POSITION_FIELDS
from cdc_lakehouse.debezium.columns import TableColumns

SOURCE_EPOCH = "source_epoch"
"""The column of work rows that the bronze ledger knows and the record does not (`cdc-semantics` rule 2.5)."""


def folded(events: DataFrame, columns: TableColumns) -> DataFrame:
    """One row per key: the source's columns as silver holds them, then the system columns.

    Of a delete only the key's columns are kept: `before` holds defaults, not values, under the usual
    replica identity (`cdc-semantics` §1).
    """
    newest = events.groupBy("key").agg(
        F.max_by(F.struct("op", "after", "source", _position().alias("position")), _position()).alias("event")
    )
    keys = {column.name for column in columns.key}
    return newest.select(
        *(
            (F.col("key") if column.name in keys else F.col("event.after"))
            .getField(column.name)
            .alias(column.name)
            for column in columns.row
        ),
        F.col("event.op").alias("_cdc_op"),
        F.col("event.position").alias("_cdc_position"),
        F.col("event.source.tx_id").alias("_cdc_tx_id"),
        F.col("event.source.ts").alias("_cdc_commit_ts"),
    )


def _position() -> Column:
    epoch = F.col(SOURCE_EPOCH).alias("epoch")
    return F.struct(epoch, *(F.col(f"position.{field}").alias(field) for field in POSITION_FIELDS))

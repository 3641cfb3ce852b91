"""Rows of several topics in one table: the topic is part of their key, or no key may be in two of them.

Kafka's message key identifies a row within one source table. Tables of two servers, or of two tenants, use
the same keys (decision 0041).
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.config.models import SharedKeys, Table
from cdc_lakehouse.debezium.columns import Column, TableColumns
from cdc_lakehouse.errors import InvalidShapeError, KeyInTwoTopicsError
from cdc_lakehouse.lake.ledger import Ledger, topics_with_records
from cdc_lakehouse.silver.folding.refold import of_keys
from cdc_lakehouse.silver.read import events


def with_topic_in_key(rows: DataFrame, name: str) -> DataFrame:
    """Return rows of bronze whose key ends with their topic under this name; null stays null."""
    parts = F.struct("key.*", F.col("topic").alias(name))
    return rows.withColumn("key", F.when(F.col("key").isNotNull(), parts))


def columns_with_topic(columns: TableColumns, name: str, *, table: str) -> TableColumns:
    """Return the columns with the topic first in the row and last in the key, by whose first column files are
    skipped. `columns` are silver's; raises where they have the name already."""
    if name.casefold() in {column.name.casefold() for column in columns.row}:
        problem = f"the source has a column of the name {name} already"
        raise InvalidShapeError(table=table, setting="topic_column", problem=problem)
    topic = Column(name, pa.string())
    return replace(columns, key=(*columns.key, topic), row=(topic, *columns.row), topic=name)


def may_share_keys(table: Table, held: Ledger) -> bool:
    """Return whether rows of two topics of this table would overwrite each other if they had equal keys."""
    is_decided = table.topic_column is not None or table.shared_keys is SharedKeys.ONE_ROW
    return len(topics_with_records(held)) > 1 and not is_decided


def refuse_shared_keys(rows: DataFrame, work: DataFrame, *, table: str) -> None:
    """Raise where events of two topics have a key of `work`. `rows` are all of bronze.

    Silver does not store the topic of a row, so the keys of all of bronze are read.
    """
    keys = events(work).select("key").distinct()
    coordinate = F.struct("topic", "partition", "offset")
    of_key = of_keys(events(rows), keys).groupBy("key")
    ends = of_key.agg(F.min(coordinate).alias("one"), F.max(coordinate).alias("other"))
    shared = ends.where(F.col("one.topic") != F.col("other.topic"))
    counted = shared.agg(F.count(F.lit(1)).alias("count"), F.min(F.struct("one", "other")).alias("first"))
    row = counted.collect()[0]
    if row["count"]:
        one, other = ("{topic}/{partition}@{offset}".format(**at.asDict()) for at in row["first"])
        raise KeyInTwoTopicsError(table=table, count=row["count"], first=one, second=other)

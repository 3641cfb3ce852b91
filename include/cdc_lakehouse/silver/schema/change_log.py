"""The log of what was changed in silver's schemas: one small Delta table per pipeline (decision 0026)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from cdc_lakehouse.errors import StorageUnavailableError, TableChangedError
from cdc_lakehouse.lake.damage import heal_torn_log
from cdc_lakehouse.lake.delta_transaction import Refusal, refusal_of, why
from cdc_lakehouse.lake.tables import create_if_missing
from cdc_lakehouse.silver.schema.evolution import ChangeKind, ColumnChange

_SCHEMA = StructType(
    [
        StructField("table", StringType()),
        StructField("at", TimestampType()),
        StructField("attempt", StringType()),
        StructField("bronze_version", LongType()),
        StructField("value_schema_ids", ArrayType(IntegerType())),
        StructField("change", StringType()),
        StructField("column", StringType()),
        StructField("was", StringType()),
        StructField("now", StringType()),
        StructField("silver_id", StringType()),
        StructField("silver_step", LongType()),
    ]
)
_SAME = " AND ".join(f"s.`{name}` <=> f.`{name}`" for name in ("table", "silver_id", "silver_step", "column"))
_REPEATED = ("at", "attempt", "bronze_version", "value_schema_ids", "now")
_TRIES = 5
"""Each gives way to another table whose columns change at the same moment."""


@dataclass(frozen=True, slots=True)
class Occasion:
    """The merge that changes a table's columns."""

    table: str
    at: datetime
    attempt: str
    bronze_version: int
    silver_id: str
    """Of the Delta table, which is another one after a rebuild."""
    silver_step: int
    """Of the ledger that the merge will state."""


def keep(session: SparkSession, uri: str, changes: Sequence[ColumnChange], occasion: Occasion) -> None:
    """Say what is about to be changed, before it is: a column without its line cannot be then.

    A repeated attempt at the same step finds its line, and has the last word on the type: one line per
    column and step, however often it is called.
    """
    heal_torn_log(uri, table=occasion.table)
    create_if_missing(session, uri, schema=_SCHEMA, properties={})
    rows = session.createDataFrame([_line(each, occasion) for each in changes], _SCHEMA)
    for _ in range(_TRIES):
        try:
            return _merge(session, uri, rows)
        except Exception as exc:
            reason = why(exc)
            match refusal_of(exc):
                case Refusal.STORAGE:
                    raise StorageUnavailableError(root=uri, reason=reason) from exc
                case Refusal.SCHEMA | Refusal.OTHER:
                    raise
                case Refusal.CHANGED:
                    continue
    raise TableChangedError(table=occasion.table, reason=reason)


def added_at(session: SparkSession, uri: str, *, table: str, silver_id: str, step: int) -> frozenset[str]:
    """Return the columns that the log says were added for this step of this silver, by any attempt at it."""
    heal_torn_log(uri, table=table)
    if not DeltaTable.isDeltaTable(session, uri):
        return frozenset()
    is_step = (F.col("table") == table) & (F.col("silver_id") == silver_id) & (F.col("silver_step") == step)
    log = session.read.format("delta").load(uri)
    lines = log.where(is_step & (F.col("change") == ChangeKind.ADDED.value)).select("column").collect()
    return frozenset(line["column"] for line in lines)


def _merge(session: SparkSession, uri: str, rows: DataFrame) -> None:
    (
        DeltaTable.forPath(session, uri)
        .alias("s")
        .merge(rows.alias("f"), _SAME)
        .whenMatchedUpdate("NOT s.now <=> f.now", {name: f"f.{name}" for name in _REPEATED})
        .whenNotMatchedInsertAll()
        .execute()
    )


def _line(change: ColumnChange, occasion: Occasion) -> tuple[object, ...]:
    return (
        occasion.table,
        occasion.at,
        occasion.attempt,
        occasion.bronze_version,
        list(change.schema_ids),
        change.kind.value,
        change.column,
        change.was,
        change.now,
        occasion.silver_id,
        occasion.silver_step,
    )

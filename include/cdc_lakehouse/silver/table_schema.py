"""Silver's Delta schema and how it follows the columns of bronze."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from cdc_lakehouse.lake.delta_transaction import NTZ
from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.lake.tables import allow_timestamps
from cdc_lakehouse.silver.evolution import SYSTEM_PREFIX, ChangeKind, ColumnChange

SILVER_PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableTypeWidening": "true",
}


def source_types(schema: StructType) -> Mapping[str, str]:
    """The source's columns of a silver table: name -> type in Spark's words."""
    return {
        field.name: field.dataType.simpleString()
        for field in schema.fields
        if not field.name.startswith(SYSTEM_PREFIX)
    }


def as_wide_as(table: StructType, rows: DataFrame) -> DataFrame:
    """`rows` with all columns of the table: NULL where bronze, made again, has a column no more."""
    missing = {each.name: F.lit(None).cast(each.dataType) for each in table if each.name not in rows.columns}
    return rows.withColumns(missing) if missing else rows


def apply_columns(session: SparkSession, uri: str, changes: Sequence[ColumnChange]) -> None:
    """A second call with the same changes fails on the column that is there already: plan again first."""
    table = quoted("delta", uri)
    if any(NTZ in each.now for each in changes):
        allow_timestamps(session, uri)
    added = [each for each in changes if each.kind is not ChangeKind.WIDENED]
    if added:
        columns = ", ".join(f"{quoted(each.column)} {each.now} {_place(each.after)}" for each in added)
        session.sql(f"ALTER TABLE {table} ADD COLUMNS ({columns})")
    for each in changes:
        if each.kind is ChangeKind.WIDENED:
            session.sql(f"ALTER TABLE {table} ALTER COLUMN {quoted(each.column)} TYPE {each.now}")


def _place(after: str) -> str:
    return f"AFTER {quoted(after)}" if after else "FIRST"

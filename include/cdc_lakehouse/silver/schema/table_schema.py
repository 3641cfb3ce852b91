"""Silver's Delta schema and how it follows the columns of bronze."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, StringType, StructField, StructType

from cdc_lakehouse.config.models import Deletes
from cdc_lakehouse.lake.delta_transaction import NTZ
from cdc_lakehouse.lake.names import literal, quoted
from cdc_lakehouse.lake.row_replacement import VECTORS
from cdc_lakehouse.lake.tables import allow_timestamps, properties_of
from cdc_lakehouse.silver.schema.evolution import SYSTEM_PREFIX, ChangeKind, ColumnChange
from cdc_lakehouse.silver.writing.merge_plan import DELETED, INCOMPLETE


def silver_properties(*, vectors: bool) -> dict[str, str]:
    """Of a new table. Who does not know deletion vectors cannot read one that may ever have had any.

    Not the widening of types: some readers refuse a table that may widen, so it comes with the first time.
    """
    return {VECTORS: "true"} if vectors else {}


def switch_vectors(session: SparkSession, uri: str, *, on: bool) -> None:
    """For the merges to come: what is marked as gone already stays marked. A second call changes nothing."""
    if (properties_of(uri).get(VECTORS) == "true") is not on:
        table, value = quoted("delta", uri), literal(str(on).lower())
        session.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({literal(VECTORS)} = {value})")


_SYSTEM = ("_cdc_op", "_cdc_position", "_cdc_tx_id", "_cdc_commit_ts")


def silver_schema(changes: StructType, *, deletes: Deletes) -> StructType:
    """The source's columns of folded changes, then ours."""
    own = [field for field in changes if not field.name.startswith(SYSTEM_PREFIX)]
    system = [changes[name] for name in _SYSTEM]
    system.append(StructField(INCOMPLETE, ArrayType(StringType())))
    if deletes is Deletes.SOFT:
        system.append(StructField(DELETED, BooleanType()))
    return StructType([*own, *system])


def add_system_columns(session: SparkSession, uri: str, *, existing: StructType, wanted: StructType) -> None:
    """Those that an earlier release, or an earlier setting of the table, did not have."""
    missing = [
        each for each in wanted if each.name.startswith(SYSTEM_PREFIX) and each.name not in existing.names
    ]
    if missing:
        columns = ", ".join(f"{quoted(each.name)} {each.dataType.simpleString()}" for each in missing)
        session.sql(f"ALTER TABLE {quoted('delta', uri)} ADD COLUMNS ({columns})")


def source_types(schema: StructType) -> Mapping[str, str]:
    """The source's columns of a silver table: name -> type in Spark's words."""
    return {
        field.name: field.dataType.simpleString()
        for field in schema.fields
        if not field.name.startswith(SYSTEM_PREFIX)
    }


def as_wide_as(table: StructType, rows: DataFrame) -> DataFrame:
    """`rows` with all columns of the source that the table has: NULL where bronze, made again, lacks one."""
    missing = {
        each.name: F.lit(None).cast(each.dataType)
        for each in table
        if each.name not in rows.columns and not each.name.startswith(SYSTEM_PREFIX)
    }
    return rows.withColumns(missing) if missing else rows


def apply_columns(session: SparkSession, uri: str, changes: Sequence[ColumnChange]) -> None:
    """A second call with the same changes fails on the column that is there already: plan again first."""
    table = quoted("delta", uri)
    if any(NTZ in each.now for each in changes):
        allow_timestamps(session, uri)
    added = [each for each in changes if each.kind in (ChangeKind.ADDED, ChangeKind.SIDE_COLUMN)]
    if added:
        columns = ", ".join(f"{quoted(each.column)} {each.now} {_place(each.after)}" for each in added)
        session.sql(f"ALTER TABLE {table} ADD COLUMNS ({columns})")
    widened = [each for each in changes if each.kind is ChangeKind.WIDENED]
    if widened:
        session.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    for each in widened:
        session.sql(f"ALTER TABLE {table} ALTER COLUMN {quoted(each.column)} TYPE {each.now}")


def _place(after: str) -> str:
    return f"AFTER {quoted(after)}" if after else "FIRST"

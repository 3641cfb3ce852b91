"""The Delta table of a history: its columns, and how they follow those of silver."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from cdc_lakehouse.debezium.bronze import POSITION_FIELDS
from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.errors import HistoryColumnsUnknownError
from cdc_lakehouse.lake.tables import create_if_missing, schema_of
from cdc_lakehouse.silver.schema.evolution import SYSTEM_PREFIX, plan_columns
from cdc_lakehouse.silver.schema.table_schema import (
    apply_columns,
    silver_properties,
    source_types,
    switch_vectors,
)


def history_schema(silver: StructType) -> StructType:
    """The source's columns as silver has them, then ours."""
    own = [field for field in silver if not field.name.startswith(SYSTEM_PREFIX)]
    # Of an end that may be missing no field is NOT NULL, as the epoch of silver's position is.
    place = StructType([StructField(name, LongType()) for name in ("epoch", *POSITION_FIELDS)])
    time = silver["_cdc_commit_ts"].dataType
    system = {
        "_cdc_op": StringType(),
        "_cdc_from": place,
        "_cdc_to": place,
        "_cdc_from_ts": time,
        "_cdc_to_ts": time,
        "_cdc_tx_id": LongType(),
        "_cdc_to_tx_id": LongType(),
        "_cdc_incomplete": ArrayType(StringType()),
    }
    return StructType([*own, *(StructField(name, type_) for name, type_ in system.items())])


def follow_silver(
    session: SparkSession,
    uri: str,
    *,
    wanted: StructType,
    columns: TableColumns,
    table: str,
    vectors: bool,
) -> StructType:
    """The schema of the history, which holds `wanted` now. A second call finds nothing to change.

    What changes was allowed for silver before: its policy is not asked again.
    """
    if create_if_missing(session, uri, schema=wanted, properties=silver_properties(vectors=vectors)):
        return wanted
    switch_vectors(session, uri, on=vectors)
    existing = schema_of(session, uri)
    sides = {column.name: column.side_of for column in columns.row if column.side_of is not None}
    known = {} if existing is None else source_types(existing)
    apply_columns(session, uri, plan_columns(known, source_types(wanted), table=table, sides=sides))
    return schema_of(session, uri) or wanted


def refuse_unknown(tracked: Sequence[str] | None, schema: StructType, *, table: str) -> None:
    missing = [name for name in tracked or () if name not in source_types(schema)]
    if missing:
        raise HistoryColumnsUnknownError(table=table, columns=", ".join(missing))

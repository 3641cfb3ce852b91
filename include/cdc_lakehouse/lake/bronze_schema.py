"""A bronze table's Delta schema, from the columns of its source and back."""

from __future__ import annotations

from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from cdc_lakehouse.debezium.bronze import bronze_schema
from cdc_lakehouse.debezium.columns import Column, TableColumns
from cdc_lakehouse.debezium.envelope import SIDES

INGESTED_AT = StructField("ingested_at", TimestampType())
ATTEMPT = StructField("attempt", StringType())


SIDE_OF = "cdc_lakehouse.side_of"
"""In the metadata of a column of the row, so that no name has to be read for a meaning."""


def table_schema(columns: TableColumns) -> StructType:
    """What the Avro UDF gives out and the table holds: a decoded row, and which attempt wrote it when."""
    fields = from_arrow_schema(bronze_schema(columns)).fields
    sides = {column.name: column.side_of for column in columns.row if column.side_of is not None}
    for field in fields if sides else ():
        if field.name in SIDES and isinstance(field.dataType, StructType):
            for own in field.dataType.fields:
                own.metadata = {SIDE_OF: sides[own.name]} if own.name in sides else {}
    return StructType([*fields, INGESTED_AT, ATTEMPT])


def schema_without_row() -> StructType:
    """Return the schema of a table that begins before any schema of its records is known."""
    unknown = {"key", *SIDES}
    schema = table_schema(TableColumns(key=(), row=()))
    return StructType([field for field in schema.fields if field.name not in unknown])


def has_row(schema: StructType) -> bool:
    """Return whether the table has columns of its source; one that has only begun has none."""
    return "after" in schema.names


def columns_in(schema: StructType) -> TableColumns:
    """The inverse of `table_schema`, as far as the source's columns go."""
    key = _fields(schema, "key") if "key" in schema.names else ()
    return TableColumns(key=key, row=_fields(schema, "after"))


def _fields(schema: StructType, name: str) -> tuple[Column, ...]:
    struct = schema[name].dataType
    if not isinstance(struct, StructType):
        raise TypeError(f"{name} of a bronze table is {struct}, not a struct")
    return tuple(
        Column(
            field.name,
            to_arrow_type(field.dataType, timezone="UTC"),
            side_of=(field.metadata or {}).get(SIDE_OF),
        )
        for field in struct.fields
    )

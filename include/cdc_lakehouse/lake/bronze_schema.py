"""A bronze table's Delta schema, from the columns of its source and back."""

from __future__ import annotations

from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from cdc_lakehouse.debezium.bronze import bronze_schema
from cdc_lakehouse.debezium.columns import Column, TableColumns

INGESTED_AT = StructField("ingested_at", TimestampType())
ATTEMPT = StructField("attempt", StringType())


def table_schema(columns: TableColumns) -> StructType:
    """What the Avro UDF gives out and the table holds: a decoded row, and which attempt wrote it when."""
    return StructType([*from_arrow_schema(bronze_schema(columns)).fields, INGESTED_AT, ATTEMPT])


def columns_in(schema: StructType) -> TableColumns:
    """The inverse of `table_schema`, as far as the source's columns go."""
    key = _fields(schema, "key") if "key" in schema.names else ()
    return TableColumns(key=key, row=_fields(schema, "after"))


def _fields(schema: StructType, name: str) -> tuple[Column, ...]:
    struct = schema[name].dataType
    if not isinstance(struct, StructType):
        raise TypeError(f"{name} of a bronze table is {struct}, not a struct")
    return tuple(Column(field.name, to_arrow_type(field.dataType, timezone="UTC")) for field in struct.fields)

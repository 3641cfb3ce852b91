"""The key of a row as one value: what an event has as its `key`."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type

from cdc_lakehouse.debezium import columns as source
from cdc_lakehouse.lake.names import quoted


def key_of(columns: Sequence[str], *, table: str = "") -> Column:
    """Of rows that have these columns, under the alias `table` where there are several."""
    prefix = f"{table}." if table else ""
    return F.struct(*(F.col(f"{prefix}{quoted(name)}") for name in columns)).alias("key")


def key_in_types_of(columns: Sequence[source.Column]) -> Column:
    """Return the key of rows of a stored table, cast to the types of these columns of an event's key.

    Bronze has a widened key before silver and its tombstones do, and Spark cannot compare structs of
    different types.
    """
    return F.struct(*key_values_in_types_of(columns)).alias("key")


def key_values_in_types_of(columns: Sequence[source.Column]) -> list[Column]:
    return [F.col(quoted(part.name)).cast(from_arrow_type(part.type)).alias(part.name) for part in columns]

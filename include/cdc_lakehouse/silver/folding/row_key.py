"""The key of a row as one value: what an event has as its `key`."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from cdc_lakehouse.lake.names import quoted


def key_of(columns: Sequence[str], *, table: str = "") -> Column:
    """Of rows that have these columns, under the alias `table` where there are several."""
    prefix = f"{table}." if table else ""
    return F.struct(*(F.col(f"{prefix}{quoted(name)}") for name in columns)).alias("key")

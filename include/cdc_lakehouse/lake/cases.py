"""Which rows of bronze wait to be decoded: undecodable ones whose case nobody has closed."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from cdc_lakehouse.lake.quarantine import CLOSED, ERROR


def waits(rows: DataFrame) -> Column:
    """A table gets the field `closed` with the first case that is closed."""
    undecodable = F.col(ERROR).isNotNull()
    kind = rows.schema[ERROR].dataType
    if isinstance(kind, StructType) and CLOSED in kind.names:
        return undecodable & F.col(f"{ERROR}.{CLOSED}").isNull()
    return undecodable

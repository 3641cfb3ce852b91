"""Make a Delta table, give it new columns: schema work that commits no data."""

from __future__ import annotations

from collections.abc import Mapping

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

LOG_RETENTION = "interval 365 days"
"""The newest ledger must outlive any time a table may stand still."""


def create_if_missing(
    session: SparkSession, uri: str, *, schema: StructType, properties: Mapping[str, str]
) -> None:
    """A second call, or a table that exists already, changes nothing."""
    builder = DeltaTable.createIfNotExists(session).location(_as_hadoop_writes_it(uri)).addColumns(schema)
    for key, value in {"delta.logRetentionDuration": LOG_RETENTION, **properties}.items():
        builder = builder.property(key, value)
    builder.execute()


def schema_of(session: SparkSession, uri: str) -> StructType | None:
    """None while the table does not exist."""
    if not DeltaTable.isDeltaTable(session, uri):
        return None
    return session.read.format("delta").load(uri).schema


def _as_hadoop_writes_it(uri: str) -> str:
    """Delta compares locations as text, and Hadoop writes `file:/x` for `file:///x`."""
    return "file:/" + uri.removeprefix("file:///") if uri.startswith("file:///") else uri

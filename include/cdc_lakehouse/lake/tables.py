"""Make a Delta table, give it new columns: schema work that commits no data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import deltalake
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from cdc_lakehouse.lake.delta_transaction import NTZ_FEATURE, create_table
from cdc_lakehouse.lake.filesystem import delta_options
from cdc_lakehouse.lake.names import literal, quoted

LOG_RETENTION = "interval 365 days"
"""The newest ledger must outlive any time without a commit. Maintenance, which states ledgers again, shortens
it for tables that have one."""


def create_if_missing(
    session: SparkSession, uri: str, *, schema: StructType, properties: Mapping[str, str]
) -> bool:
    """Whether it was made here. A second call, or a table that exists already, changes nothing."""
    return create_table(
        session, uri, schema=schema, properties={"delta.logRetentionDuration": LOG_RETENTION, **properties}
    )


def allow_timestamps(session: SparkSession, uri: str) -> None:
    """Before the table gets its first TIMESTAMP_NTZ column. A second call changes nothing."""
    features = ", ".join(f"{literal(name)} = {literal(value)}" for name, value in NTZ_FEATURE.items())
    session.sql(f"ALTER TABLE {quoted('delta', uri)} SET TBLPROPERTIES ({features})")


def properties_of(uri: str) -> Mapping[str, str]:
    """As the newest version has them."""
    found: Mapping[str, str] = _table(uri).metadata().configuration
    return found


def life_of(uri: str) -> str:
    """Delta's id of the table: one that is made anew in the same folder has another."""
    return str(_table(uri).metadata().id)


def columns_of(uri: str) -> Sequence[str]:
    """Their names, as the newest version has them."""
    return [field.name for field in _table(uri).schema().fields]


def schema_of(session: SparkSession, uri: str) -> StructType | None:
    """None while the table does not exist."""
    if not DeltaTable.isDeltaTable(session, uri):
        return None
    return session.read.format("delta").load(uri).schema


def _table(uri: str) -> deltalake.DeltaTable:
    return deltalake.DeltaTable(uri, storage_options=delta_options(uri))

"""Write versions into a history: one MERGE, by key and beginning."""

from __future__ import annotations

from collections.abc import Sequence

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.silver.history.rows import GOES


def merge_history(session: SparkSession, uri: str, rows: DataFrame, *, keys: Sequence[str]) -> None:
    """A second call with the same rows changes nothing."""
    values = {quoted(name): F.col(f"f.{quoted(name)}") for name in rows.columns if name != GOES}
    same = F.lit(True)
    for name in (*keys, "_cdc_from", "_cdc_tx_id"):
        same &= F.col(f"h.{quoted(name)}").eqNullSafe(F.col(f"f.{quoted(name)}"))
    goes = F.col(f"f.{GOES}")
    (
        DeltaTable.forPath(session, uri)
        .alias("h")
        .merge(rows.alias("f"), same)
        .whenMatchedDelete(goes)
        .whenMatchedUpdate(set=values)
        .whenNotMatchedInsert(~goes, values=values)
        .execute()
    )

"""Write versions into a history: one MERGE, by key and beginning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.silver.history.rows import GOES


def merge_history(
    session: SparkSession, uri: str, rows: DataFrame, *, keys: Sequence[str], fills: Mapping[str, Column]
) -> None:
    """Write `rows`, and put `fills` where other rows have no value. A second call changes nothing."""
    values = {quoted(name): F.col(f"f.{quoted(name)}") for name in rows.columns if name != GOES}
    same = F.lit(True)
    for name in (*keys, "_cdc_from", "_cdc_tx_id"):
        same &= F.col(f"h.{quoted(name)}").eqNullSafe(F.col(f"f.{quoted(name)}"))
    goes = F.col(f"f.{GOES}")
    statement = (
        DeltaTable.forPath(session, uri)
        .alias("h")
        .merge(rows.alias("f"), same)
        .whenMatchedDelete(goes)
        .whenMatchedUpdate(set=values)
        .whenNotMatchedInsert(~goes, values=values)
    )
    if fills:
        lacks = reduce(or_, (F.col(f"h.{quoted(name)}").isNull() for name in fills))
        own = {quoted(name): F.coalesce(F.col(f"h.{quoted(name)}"), value) for name, value in fills.items()}
        statement = statement.whenNotMatchedBySourceUpdate(lacks, own)
    statement.execute()

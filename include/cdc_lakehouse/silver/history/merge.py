"""Write versions into a history: one MERGE, by key and beginning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_, or_

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.silver.history.rows import GOES
from cdc_lakehouse.silver.history.versions import is_same_value


def differing_versions(history: DataFrame, rows: DataFrame, *, keys: Sequence[str]) -> DataFrame:
    """Return those of `rows` that `merge_history` would not find in `history` as they are."""
    values = [name for name in rows.columns if name != GOES]
    same = reduce(and_, (_is_same_version(name) for name in (*keys, "_cdc_from", "_cdc_tx_id")))
    is_equal = reduce(
        and_,
        (
            is_same_value(
                history.schema[name].dataType, F.col(f"h.{quoted(name)}"), F.col(f"f.{quoted(name)}")
            )
            for name in values
        ),
    )
    joined = rows.alias("f").join(history.alias("h"), same, "left")
    is_there, goes = F.col("h._cdc_from").isNotNull(), F.col(f"f.{GOES}")
    return joined.where(F.when(goes, is_there).otherwise(~is_there | ~is_equal)).select("f.*")


def merge_history(
    session: SparkSession, uri: str, rows: DataFrame, *, keys: Sequence[str], fills: Mapping[str, Column]
) -> None:
    """Write `rows`, and put `fills` where other rows have no value. A second call changes nothing."""
    values = {quoted(name): F.col(f"f.{quoted(name)}") for name in rows.columns if name != GOES}
    same = reduce(and_, (_is_same_version(name) for name in (*keys, "_cdc_from", "_cdc_tx_id")))
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


def _is_same_version(name: str) -> Column:
    return F.col(f"h.{quoted(name)}").eqNullSafe(F.col(f"f.{quoted(name)}"))

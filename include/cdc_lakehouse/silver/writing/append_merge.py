"""Write rows of events to silver that it does not have yet: one MERGE, which carries the ledger."""

from __future__ import annotations

from collections.abc import Sequence

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.silver.folding.event_identity import is_same_event, once_each
from cdc_lakehouse.silver.writing.literals import between
from cdc_lakehouse.silver.writing.merge import MergeResult, merged

_PRUNED_BY = ("epoch", "row")
"""What an event has in common with all its repetitions: the commit before it may differ (rule 2.2)."""


def append(
    session: SparkSession, uri: str, *, rows: DataFrame, keys: Sequence[str], ledger: Ledger
) -> MergeResult:
    """Insert each event of `rows` that silver lacks once, and state `ledger` in the same commit.

    `session` is the table's own. A second call with the same ledger changes nothing and raises
    `SupersededError`; with a later ledger and the same rows it states that ledger and inserts nothing.
    """
    table = DeltaTable.forPath(session, uri).alias("s")
    condition = may_have(rows, "s") & is_same_event("s", "f", keys)
    values = {quoted(name): F.col(f"f.{quoted(name)}") for name in rows.columns}
    new = once_each(rows, keys).alias("f")
    statement = table.merge(new, condition).whenNotMatchedInsert(values=values)
    return merged(session, uri, statement, ledger=ledger)


def missing_events(session: SparkSession, uri: str, *, rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the events of `rows` that silver does not have."""
    silver = session.read.format("delta").load(uri).alias("s")
    condition = may_have(rows, "s") & is_same_event("s", "f", keys)
    return once_each(rows, keys).alias("f").join(silver, condition, "left_anti")


def may_have(rows: DataFrame, table: str) -> Column:
    """Of the rows of `table`: literals, so that Delta passes over files without any of these events."""
    fields = [F.col("_cdc_position")[name] for name in _PRUNED_BY]
    ends = rows.agg(*(F.struct(F.min(field), F.max(field)) for field in fields)).collect()[0]
    condition = F.lit(True)
    for name, (lowest, highest) in zip(_PRUNED_BY, ends, strict=True):
        field = F.col(f"{table}._cdc_position")[name]
        condition &= between(field, lowest, highest, type_=LongType())
    return condition

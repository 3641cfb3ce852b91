"""Apply folded changes to silver: one MERGE, which carries the ledger."""

from __future__ import annotations

from dataclasses import dataclass

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.lake.transaction import commit, fenced_statement
from cdc_lakehouse.silver.refold import REFOLDED

_NEWER = "f._cdc_position > s._cdc_position"
_NOT_OLDER = f"(f.{REFOLDED} AND f._cdc_position >= s._cdc_position)"
"""Bronze may lack a row that silver has applied: somebody deleted it by hand."""
_DELETE = "f._cdc_op = 'd'"


@dataclass(frozen=True, slots=True)
class MergeResult:
    version: int
    inserted: int
    updated: int
    deleted: int


def merge(
    session: SparkSession, uri: str, *, changes: DataFrame, columns: TableColumns, ledger: Ledger
) -> MergeResult:
    """Apply `changes`, gated by position, and state `ledger` in the same commit.

    A key that was refolded replaces a row of the same position too, never a newer one.

    `session` is the table's own: the ledger travels in its settings. A second call with the same
    ledger changes nothing and raises `SupersededError`.
    """
    gate = f"({_NOT_OLDER} OR {_NEWER})" if REFOLDED in changes.columns else _NEWER
    on_key = " AND ".join(f"s.{quoted(c.name)} <=> f.{quoted(c.name)}" for c in columns.key)
    statement = (
        DeltaTable.forPath(session, uri)
        .alias("s")
        .merge(changes.alias("f"), on_key)
        .whenMatchedDelete(f"{gate} AND {_DELETE}")
        .whenMatchedUpdateAll(gate)
        .whenNotMatchedInsertAll(f"NOT ({_DELETE})")
    )
    affected: dict[str, int] = {}

    def execute() -> None:
        with fenced_statement(session, ledger):
            row = statement.execute().collect()[0]
        affected.update(row.asDict())

    state = commit(execute, uri=uri, ledger=ledger)
    return MergeResult(
        version=state.version,
        inserted=affected.get("num_inserted_rows", 0),
        updated=affected.get("num_updated_rows", 0),
        deleted=affected.get("num_deleted_rows", 0),
    )

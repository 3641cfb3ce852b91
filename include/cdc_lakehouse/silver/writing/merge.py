"""Apply folded changes to silver: one MERGE, which carries the ledger."""

from __future__ import annotations

from dataclasses import dataclass

from delta.tables import DeltaMergeBuilder, DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.merged_rows import merged_rows
from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.lake.transaction import commit, fenced_statement
from cdc_lakehouse.silver.folding.fold import GONE
from cdc_lakehouse.silver.writing.changed_keys import ChangedKeys
from cdc_lakehouse.silver.writing.merge_plan import MergePlan, Values


@dataclass(frozen=True, slots=True)
class MergeResult:
    version: int
    inserted: int
    updated: int
    deleted: int


def merge(
    session: SparkSession,
    uri: str,
    *,
    changes: DataFrame,
    plan: MergePlan,
    ledger: Ledger,
    keys: ChangedKeys | None = None,
) -> MergeResult:
    """Apply `changes`, gated by position, and state `ledger` in the same commit.

    With `keys`, those of the changes, only files that may have them are read.
    `session` is the table's own: the ledger travels in its settings. A second call with the same
    ledger changes nothing and raises `SupersededError`.
    """
    table = DeltaTable.forPath(session, uri).alias("s")
    looks_at_all = keys is None or plan.cleared is not None or plan.sets_all
    on = plan.on_key() if looks_at_all or keys is None else plan.on_key() & keys.contain("s")
    statement = _statement(table.merge(changes.alias("f"), on), plan)
    return merged(session, uri, statement, ledger=ledger)


def merged(session: SparkSession, uri: str, statement: DeltaMergeBuilder, *, ledger: Ledger) -> MergeResult:
    """Run a MERGE that states `ledger`; its counts come from its commit where the answer was lost."""
    answer: dict[str, int] = {}

    def execute() -> None:
        with fenced_statement(session, ledger):
            answer.update(statement.execute().collect()[0].asDict())

    state = commit(execute, uri=uri, ledger=ledger)
    affected = answer or merged_rows(uri, state.version if state.stated is None else state.stated)
    return MergeResult(
        version=state.version,
        inserted=affected["num_inserted_rows"],
        updated=affected["num_updated_rows"],
        deleted=affected["num_deleted_rows"],
    )


def _statement(statement: DeltaMergeBuilder, plan: MergePlan) -> DeltaMergeBuilder:
    """The first clause that holds is the one that counts."""
    applies = plan.applies()
    if plan.keeps_deleted:
        statement = statement.whenMatchedUpdate(applies, _written(plan.row()))
        statement = statement.whenNotMatchedInsert(values=_written(plan.new_row()))
    else:
        statement = statement.whenMatchedDelete(applies & _goes())
        statement = statement.whenMatchedUpdate(applies, _written(plan.row()))
        statement = statement.whenNotMatchedInsert(~_goes(), _written(plan.new_row()))
    if plan.cleared is not None and plan.keeps_deleted:
        cleared = _written(plan.cleared_row())
        statement = statement.whenMatchedUpdate(plan.is_cleared(), cleared)
        statement = statement.whenNotMatchedBySourceUpdate(plan.is_cleared(), cleared)
    elif plan.cleared is not None:
        statement = statement.whenMatchedDelete(plan.is_cleared())
        statement = statement.whenNotMatchedBySourceDelete(plan.is_cleared())
    if plan.sets_all:
        values = _written(plan.set_row())
        statement = statement.whenMatchedUpdate(plan.is_to_be_set(), values)
        statement = statement.whenNotMatchedBySourceUpdate(plan.is_to_be_set(), values)
    return statement


def _goes() -> Column:
    return F.col(f"f.{GONE}")


def _written(values: Values) -> dict[str, Column]:
    return {quoted(name): value for name, value in values.items()}

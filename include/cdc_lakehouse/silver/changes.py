"""What a merge is to write: the events of its work folded, and keys refolded whose past has changed."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.lake.bronze_schema import columns_in
from cdc_lakehouse.lake.cases import waits
from cdc_lakehouse.lake.spans import Spans, together
from cdc_lakehouse.silver.fold import folded
from cdc_lakehouse.silver.held import waiting, without_waiting
from cdc_lakehouse.silver.look import MergeTask
from cdc_lakehouse.silver.passed_over import passed_over
from cdc_lakehouse.silver.plan import MOST_PARTS
from cdc_lakehouse.silver.read import WorkFacts, bronze_rows, changed_behind, events, examine, work_of
from cdc_lakehouse.silver.refold import with_refolded


@dataclass(frozen=True, slots=True)
class Changes:
    rows: DataFrame
    """One per key; with the column `refolded` where some were."""
    columns: TableColumns
    facts: WorkFacts
    undecodable: Spans
    """Where records of the work are that could not be decoded, closed cases too, and perhaps some more."""
    parked: int
    """Events of the work that wait for a record that could not be decoded."""


def changes_of(session: SparkSession, uri: str, task: MergeTask) -> Changes:
    """Raises for what this release cannot apply; nothing is written here."""
    history = bronze_rows(session, uri, version=task.bronze_version, held=task.held)
    columns = columns_in(history.schema)
    came_late = together(task.late, task.read_again)
    behind = changed_behind(task.held, came_late, task.redo)
    work = history.where(work_of(task.held, task.work) | behind)
    facts = examine(work, table=task.table.name)
    undecodable = passed_over(work, task.held, most=MOST_PARTS) if facts.undecoded else {}
    keys = history.where(behind).select("key") if came_late or task.redo else None
    if task.releases:
        open_keys = history.where(waits(history)).select("key")
        keys = open_keys if keys is None else keys.unionByName(open_keys)
    parked = 0
    if task.holds:
        cases = waiting(history, table=task.table.name)
        history, whole = without_waiting(history, cases), work
        work = without_waiting(whole, cases)
        parked = events(whole).count() - events(work).count()
    if keys is None:
        rows = folded(events(work), columns)
    else:
        rows = with_refolded(events(work), history=events(history), keys=keys, columns=columns)
    return Changes(rows=rows, columns=columns, facts=facts, undecodable=undecodable, parked=parked)

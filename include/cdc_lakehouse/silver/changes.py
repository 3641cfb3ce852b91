"""What a merge is to write: the events of its work folded, and keys refolded whose past has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from cdc_lakehouse.config.models import Deletes
from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.lake.applied import Applied
from cdc_lakehouse.lake.bronze_schema import columns_in
from cdc_lakehouse.lake.cases import waits
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.spans import Spans, together
from cdc_lakehouse.silver.clearing import cleared_by
from cdc_lakehouse.silver.examine import WorkFacts, examine
from cdc_lakehouse.silver.folding import Folding
from cdc_lakehouse.silver.held import waiting, without_waiting
from cdc_lakehouse.silver.look import MergeTask
from cdc_lakehouse.silver.passed_over import passed_over
from cdc_lakehouse.silver.plan import MOST_PARTS
from cdc_lakehouse.silver.read import bronze_rows, changed_behind, events, work_of
from cdc_lakehouse.silver.refold import incomplete_keys
from cdc_lakehouse.silver.tombstones import without_buried


@dataclass(frozen=True, slots=True)
class Looked:
    """What a merge has looked at."""

    rows: DataFrame
    """All of bronze, but those that wait."""
    work: DataFrame
    """Events of the work."""
    keys: DataFrame | None
    """Whose past has changed."""


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
    lacking: Sequence[str]
    """Columns that some event does not tell."""
    applied: Applied
    """What silver has applied with them."""
    looked: Looked


def changes_of(session: SparkSession, lake: Lake, task: MergeTask) -> Changes:
    """Raises for what this release cannot apply; nothing is written here."""
    name = task.table.name
    history = bronze_rows(session, lake.bronze(name), version=task.bronze_version, held=task.held)
    columns = columns_in(history.schema)
    came_late = together(task.late, task.read_again)
    behind = changed_behind(task.held, came_late, task.redo)
    work = history.where(work_of(task.held, task.work) | behind)
    facts = examine(work, table=name)
    undecodable = passed_over(work, task.held, most=MOST_PARTS) if facts.undecoded else {}
    keys = history.where(behind).select("key") if came_late or task.redo else None
    if task.releases:
        keys = _both(keys, history.where(waits(history)).select("key"))
    if task.before.applied.unfilled:
        keys = _both(keys, incomplete_keys(session, lake.silver(name), columns))
    parked = 0
    if task.holds:
        cases = waiting(history, table=name)
        history, whole = without_waiting(history, cases), work
        work = without_waiting(whole, cases)
        parked = events(whole).count() - events(work).count()
    applied = cleared_by(task.before.applied, truncated=facts.cleared, ended=facts.ended, held=task.held)
    folding = Folding(columns, events(history), cleared=applied.cleared)
    found = folding.of(_not_buried(session, lake, task, events(work), columns, facts), facts, keys=keys)
    reached = max((each for each in (applied.reached, facts.highest) if each is not None), default=None)
    return Changes(
        rows=found.rows,
        columns=columns,
        facts=facts,
        undecodable=undecodable,
        parked=parked,
        lacking=found.lacking,
        applied=replace(applied, reached=reached, unfilled=found.unfilled),
        looked=Looked(history, events(work), keys),
    )


def _not_buried(
    session: SparkSession,
    lake: Lake,
    task: MergeTask,
    work: DataFrame,
    columns: TableColumns,
    facts: WorkFacts,
) -> DataFrame:
    """Only an event that is not above all that silver has applied can be older than a delete."""
    reached = task.before.applied.reached
    if (
        task.table.deletes is Deletes.SOFT
        or facts.lowest is None
        or reached is None
        or facts.lowest > reached
    ):
        return work
    return without_buried(session, lake.tombstones(task.table.name), work, columns, lowest=facts.lowest)


def _both(one: DataFrame | None, other: DataFrame) -> DataFrame:
    return other if one is None else one.unionByName(other)

"""What a merge is to write: the events of its work folded, and keys refolded whose past has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from cdc_lakehouse.config.mask_secret import MaskSecret
from cdc_lakehouse.config.models import Deletes, Table
from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.lake.applied import Applied
from cdc_lakehouse.lake.bronze_schema import columns_in
from cdc_lakehouse.lake.cases import waits
from cdc_lakehouse.lake.ledger import topics_of
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.spans import Spans, together
from cdc_lakehouse.lake.tables import schema_of
from cdc_lakehouse.silver.clearing import cleared_by
from cdc_lakehouse.silver.examine import WorkFacts, examine
from cdc_lakehouse.silver.folding import Folded, Folding
from cdc_lakehouse.silver.held import waiting, without_waiting
from cdc_lakehouse.silver.look import MergeTask
from cdc_lakehouse.silver.made_by import refuse_other_settings, settings_of
from cdc_lakehouse.silver.passed_over import passed_over
from cdc_lakehouse.silver.plan import MOST_PARTS
from cdc_lakehouse.silver.read import bronze_rows, changed_behind, events, work_of
from cdc_lakehouse.silver.refold import incomplete_keys
from cdc_lakehouse.silver.refused import count_refused, may_have_gone_back, refuse_what_went_back
from cdc_lakehouse.silver.row_filter import (
    count_outside,
    filtered,
    keys_that_moved,
    keys_with_untold_values,
    refuse_filter,
)
from cdc_lakehouse.silver.shape import plan_shape
from cdc_lakehouse.silver.shaping import shaped
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
    refused: int
    """Events of the work that are not newer than what silver has."""
    lacking: Sequence[str]
    """Columns that some event does not tell."""
    applied: Applied
    """What silver has applied with them."""
    outside: int | None
    """Keys whose rows do not satisfy the table's filter; None of a table that has none."""
    looked: Looked


def changes_of(session: SparkSession, lake: Lake, task: MergeTask, *, secret: MaskSecret | None) -> Changes:
    """Raises for what this release cannot apply; nothing is written here."""
    name = task.table.name
    history = bronze_rows(session, lake.bronze(name), version=task.bronze_version, held=task.held)
    _refuse_other_settings(session, lake, task, columns_in(history.schema), secret=secret)
    shape = plan_shape(columns_in(history.schema), task.table.columns, table=name)
    history, columns = shaped(history, shape, secret=secret), shape.columns
    came_late = together(task.late, task.read_again)
    behind = changed_behind(task.held, came_late, task.redo)
    work = history.where(work_of(task.held, task.work) | behind)
    facts = examine(work, table=name, topics=len(topics_of(task.held)))
    if may_have_gone_back(facts, before=task.before.applied, held=task.held, work=task.work):
        refuse_what_went_back(history, held=task.held, work=task.work)
    undecodable = passed_over(work, task.held, most=MOST_PARTS) if facts.undecoded else {}
    keys = history.where(behind).select("key") if came_late or task.redo else None
    if task.releases:
        keys = _both(keys, history.where(waits(history)).select("key"))
    was_unfilled = task.before.applied.unfilled
    if task.table.filter is not None:
        keys = _keys_with_open_values(keys, task, facts, events(work), events(history))
    elif was_unfilled and facts.departures:
        keys = _both(keys, incomplete_keys(session, lake.silver(name), columns))
    parked = 0
    if task.holds:
        cases = waiting(history, table=name)
        history, whole = without_waiting(history, cases), work
        work = without_waiting(whole, cases)
        parked = events(whole).count() - events(work).count()
    refused = count_refused(session, lake, events(work), columns, facts=facts, before=task.before)
    applied = cleared_by(task.before.applied, truncated=facts.cleared, ended=facts.ended, held=task.held)
    folding = Folding(columns, events(history), cleared=applied.cleared)
    found = folding.of(_not_buried(session, lake, task, events(work), columns, facts), facts, keys=keys)
    reached = max((each for each in (applied.reached, facts.highest) if each is not None), default=None)
    rows, outside = _inside(task.table, found, columns)
    return Changes(
        rows=rows,
        outside=outside,
        columns=columns,
        facts=facts,
        undecodable=undecodable,
        parked=parked,
        refused=refused,
        lacking=found.lacking,
        applied=replace(
            applied,
            reached=reached,
            unfilled=found.unfilled or (was_unfilled and not facts.departures),
            made_by=settings_of(task.table, secret),
        ),
        looked=Looked(history, events(work), keys),
    )


def _refuse_other_settings(
    session: SparkSession, lake: Lake, task: MergeTask, bronze: TableColumns, *, secret: MaskSecret | None
) -> None:
    before = task.before.applied
    if task.before.seq == 0 or before.made_by == settings_of(task.table, secret):
        return
    silver = schema_of(session, lake.silver(task.table.name))
    existing = () if silver is None else silver.names
    refuse_other_settings(before, task.table, bronze, secret=secret, existing=existing)


def _keys_with_open_values(
    keys: DataFrame | None, task: MergeTask, facts: WorkFacts, work: DataFrame, history: DataFrame
) -> DataFrame | None:
    """For a filter: it is asked of whole rows, and silver does not have those outside of it."""
    if facts.unavailable:
        keys = _both(keys, keys_with_untold_values(work))
    if task.before.applied.unfilled:
        keys = _both(keys, keys_that_moved(history))
    return keys


def _inside(table: Table, found: Folded, columns: TableColumns) -> tuple[DataFrame, int | None]:
    """With how many are outside: they are counted before they are written, so they are kept meanwhile."""
    if table.filter is None:
        return found.rows, None
    refuse_filter(found.rows, table.filter, columns, table=table.name)
    rows = filtered(
        found.rows,
        table.filter,
        columns,
        lacking=found.lacking,
        keeps_deleted=table.deletes is Deletes.SOFT,
    ).persist()
    return rows, count_outside(rows)


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
    if facts.lowest is None or reached is None or facts.lowest > reached:
        return work
    return without_buried(session, lake.tombstones(task.table.name), work, columns, lowest=facts.lowest)


def _both(one: DataFrame | None, other: DataFrame) -> DataFrame:
    return other if one is None else one.unionByName(other)

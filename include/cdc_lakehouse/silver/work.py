"""What a merge looks at: the events that silver has not applied, and the keys whose past has changed."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from cdc_lakehouse.config.mask_secret import MaskSecret
from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.lake.bronze_schema import columns_in
from cdc_lakehouse.lake.cases import waits
from cdc_lakehouse.lake.ledger import topics_of
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.spans import Spans, together
from cdc_lakehouse.lake.tables import schema_of
from cdc_lakehouse.silver.examine import WorkFacts, examine
from cdc_lakehouse.silver.held import waiting, without_waiting
from cdc_lakehouse.silver.look import MergeTask
from cdc_lakehouse.silver.made_by import refuse_history_of_others, refuse_other_settings, settings_of
from cdc_lakehouse.silver.own_key import own_key
from cdc_lakehouse.silver.own_key_checks import refuse_double_keys, refuse_untold_keys
from cdc_lakehouse.silver.passed_over import passed_over
from cdc_lakehouse.silver.plan import MOST_PARTS
from cdc_lakehouse.silver.read import bronze_rows, changed_behind, events, work_of
from cdc_lakehouse.silver.refold import incomplete_keys
from cdc_lakehouse.silver.refused import may_have_gone_back, refuse_what_went_back
from cdc_lakehouse.silver.rekeying import rekeyed, with_told_keys
from cdc_lakehouse.silver.row_filter import keys_that_moved, keys_with_untold_values
from cdc_lakehouse.silver.shape import plan_shape
from cdc_lakehouse.silver.shaping import shaped


@dataclass(frozen=True, slots=True)
class Work:
    rows: DataFrame
    """All of bronze in silver's columns, but what waits."""
    events: DataFrame
    keys: DataFrame | None
    """Whose past has changed."""
    columns: TableColumns
    facts: WorkFacts
    undecodable: Spans
    """Where records of the work are that could not be decoded, closed cases too, and perhaps some more."""
    parked: int
    """Events of the work that wait for a record that could not be decoded."""


def work_at(session: SparkSession, lake: Lake, task: MergeTask, *, secret: MaskSecret | None) -> Work:
    """Raises for what cannot be applied."""
    name = task.table.name
    bronze = bronze_rows(session, lake.bronze(name), version=task.bronze_version, held=task.held)
    known = columns_in(bronze.schema)
    _refuse_other_settings(session, lake, task, known, secret=secret)
    refuse_history_of_others(lake, task.table, known, secret)
    own = own_key(known, task.table)
    shape = plan_shape(known if own is None else own.columns, task.table.columns, table=name)
    rows = shaped(rekeyed(bronze, own), shape, secret=secret)
    behind = changed_behind(task.held, together(task.late, task.read_again), task.redo)
    is_work = work_of(task.held, task.work) | behind
    work = rows.where(is_work)
    facts = examine(work, table=name, topics=len(topics_of(task.held)), by_key=own is None)
    if may_have_gone_back(facts, before=task.before.applied, held=task.held, work=task.work):
        refuse_what_went_back(bronze, held=task.held, work=task.work)
    if own is not None:
        refuse_untold_keys(lake, task, bronze.where(is_work), own, facts=facts)
        rows, work = with_told_keys(rows), with_told_keys(work)
    undecodable = passed_over(work, task.held, most=MOST_PARTS) if facts.undecoded else {}
    keys = rows.where(behind).select("key") if task.late or task.read_again or task.redo else None
    keys = _with_open_keys(
        session, lake, task, keys, facts=facts, rows=rows, work=work, columns=shape.columns
    )
    parked = 0
    if task.holds:
        cases = waiting(rows, table=name)
        rows, whole = without_waiting(rows, cases), work
        work = without_waiting(whole, cases)
        parked = events(whole).count() - events(work).count()
    if own is not None:
        refuse_double_keys(session, lake, task, rows, work, columns=shape.columns, facts=facts)
    return Work(rows, events(work), keys, shape.columns, facts, undecodable, parked)


def _refuse_other_settings(
    session: SparkSession, lake: Lake, task: MergeTask, bronze: TableColumns, *, secret: MaskSecret | None
) -> None:
    before = task.before.applied
    if task.before.seq == 0 or before.made_by == settings_of(task.table, secret):
        return
    silver = schema_of(session, lake.silver(task.table.name))
    existing = () if silver is None else silver.names
    refuse_other_settings(before, task.table, bronze, secret=secret, existing=existing)


def _with_open_keys(
    session: SparkSession,
    lake: Lake,
    task: MergeTask,
    keys: DataFrame | None,
    *,
    facts: WorkFacts,
    rows: DataFrame,
    work: DataFrame,
    columns: TableColumns,
) -> DataFrame | None:
    """Keys that were released, or whose values were open and may be told by now.

    A filter is asked of whole rows, and silver does not have those outside of it.
    """
    if task.releases:
        keys = _both(keys, rows.where(waits(rows)).select("key"))
    if task.table.filter is not None:
        if facts.unavailable:
            keys = _both(keys, keys_with_untold_values(events(work)))
        return _both(keys, keys_that_moved(events(rows))) if task.before.applied.unfilled else keys
    if task.before.applied.unfilled and facts.departures:
        keys = _both(keys, incomplete_keys(session, lake.silver(task.table.name), columns))
    return keys


def _both(one: DataFrame | None, other: DataFrame) -> DataFrame:
    return other if one is None else one.unionByName(other)

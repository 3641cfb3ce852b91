"""What a merge looks at: the events that silver has not applied, and the keys whose past has changed."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession

from cdc_lakehouse.config.mask_secret import MaskSecret
from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.lake.bronze_schema import columns_in
from cdc_lakehouse.lake.cases import waits
from cdc_lakehouse.lake.ledger import topics_of
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.spans import Spans, together
from cdc_lakehouse.lake.tables import schema_of
from cdc_lakehouse.silver.columns.shape import plan_shape
from cdc_lakehouse.silver.columns.shaping import shaped
from cdc_lakehouse.silver.examine import WorkFacts, examine
from cdc_lakehouse.silver.folding.commits import recommitted, with_one_commit
from cdc_lakehouse.silver.held import waiting, without_waiting
from cdc_lakehouse.silver.late.anew import keys_anew
from cdc_lakehouse.silver.late.refused import may_have_gone_back, refuse_what_went_back
from cdc_lakehouse.silver.look import MergeTask
from cdc_lakehouse.silver.made_by import refuse_history_of_others, refuse_other_settings, settings_of
from cdc_lakehouse.silver.own_key.checks import refuse_double_keys, refuse_untold_keys
from cdc_lakehouse.silver.own_key.key_columns import OwnKey, own_key
from cdc_lakehouse.silver.own_key.rekeying import rekeyed, with_told_keys
from cdc_lakehouse.silver.passed_over import passed_over
from cdc_lakehouse.silver.plan import MOST_PARTS
from cdc_lakehouse.silver.read import bronze_rows, changed_behind, events, work_of


@dataclass(frozen=True, slots=True)
class Work:
    rows: DataFrame
    """All of bronze in silver's columns, but what waits."""
    events: DataFrame
    """Of the work; those of one transaction have one commit before them."""
    keys: DataFrame | None
    """Which are computed anew, silver's rows and their history; None where none are."""
    columns: TableColumns
    facts: WorkFacts
    undecodable: Spans
    """Where records of the work are that could not be decoded, closed cases too, and perhaps some more."""
    parked: int
    """Events of the work that wait for a record that could not be decoded."""
    refused: int = 0
    """Events of the work that are not newer than what silver has."""
    fills: bool = False
    """Whether all rows whose values were open are computed anew."""


@dataclass(frozen=True, slots=True)
class _Bronze:
    """As silver takes it: in its columns, under its key."""

    told: DataFrame
    """As bronze tells it."""
    rows: DataFrame
    own: OwnKey | None
    columns: TableColumns


def work_at(session: SparkSession, lake: Lake, task: MergeTask, *, secret: MaskSecret | None) -> Work:
    """Raises for what cannot be applied."""
    bronze = _bronze(session, lake, task, secret=secret)
    behind = changed_behind(task.held, together(task.late, task.read_again), task.redo)
    is_work = work_of(task.held, task.work) | behind
    facts = _examined(lake, task, bronze, is_work)
    rows = bronze.rows if bronze.own is None else with_told_keys(bronze.rows)
    work = rows.where(is_work)
    undecodable = passed_over(work, task.held, most=MOST_PARTS) if facts.undecoded else {}
    changed = [rows.where(behind).select("key")] if task.late or task.read_again or task.redo else []
    if task.releases:
        changed.append(rows.where(waits(rows)).select("key"))
    parked = 0
    if task.holds:
        cases = waiting(rows, table=task.table.name)
        rows, whole = without_waiting(rows, cases), work
        work = without_waiting(whole, cases)
        parked = events(whole).count() - events(work).count()
    if bronze.own is not None:
        refuse_double_keys(session, lake, task, rows, work, columns=bronze.columns, facts=facts)
    found, held = events(work), events(rows)
    found = with_one_commit(found, recommitted(found)) if facts.sends_again else found
    anew = keys_anew(session, lake, task, bronze.columns, facts=facts, held=held, work=found, changed=changed)
    return Work(rows, found, anew.keys, bronze.columns, facts, undecodable, parked, anew.refused, anew.fills)


def _bronze(session: SparkSession, lake: Lake, task: MergeTask, *, secret: MaskSecret | None) -> _Bronze:
    """Refuses settings that would make other rows than silver has."""
    name = task.table.name
    told = bronze_rows(session, lake.bronze(name), version=task.bronze_version, held=task.held)
    known = columns_in(told.schema)
    _refuse_other_settings(session, lake, task, known, secret=secret)
    refuse_history_of_others(lake, task.table, known, secret)
    own = own_key(known, task.table)
    shape = plan_shape(known if own is None else own.columns, task.table.columns, table=name)
    return _Bronze(told, shaped(rekeyed(told, own), shape, secret=secret), own, shape.columns)


def _examined(lake: Lake, task: MergeTask, bronze: _Bronze, is_work: Column) -> WorkFacts:
    """Refuses events that cannot be applied, a source that went back, and keys that are not told."""
    topics = len(topics_of(task.held))
    work = bronze.rows.where(is_work)
    facts = examine(work, table=task.table.name, topics=topics, by_key=bronze.own is None)
    if may_have_gone_back(facts, before=task.before.applied, held=task.held, work=task.work):
        refuse_what_went_back(bronze.told, held=task.held, work=task.work)
    if bronze.own is not None:
        refuse_untold_keys(lake, task, bronze.told.where(is_work), bronze.own, facts=facts)
    return facts


def _refuse_other_settings(
    session: SparkSession, lake: Lake, task: MergeTask, bronze: TableColumns, *, secret: MaskSecret | None
) -> None:
    before = task.before.applied
    if task.before.seq == 0 or before.made_by == settings_of(task.table, secret):
        return
    silver = schema_of(session, lake.silver(task.table.name))
    existing = () if silver is None else silver.names
    refuse_other_settings(before, task.table, bronze, secret=secret, existing=existing)

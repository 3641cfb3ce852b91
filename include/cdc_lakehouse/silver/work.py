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
from cdc_lakehouse.silver.anew import keys_anew
from cdc_lakehouse.silver.commits import recommitted, with_one_commit
from cdc_lakehouse.silver.examine import WorkFacts, examine
from cdc_lakehouse.silver.held import waiting, without_waiting
from cdc_lakehouse.silver.look import MergeTask
from cdc_lakehouse.silver.made_by import refuse_history_of_others, refuse_other_settings, settings_of
from cdc_lakehouse.silver.own_key import own_key
from cdc_lakehouse.silver.own_key_checks import refuse_double_keys, refuse_untold_keys
from cdc_lakehouse.silver.passed_over import passed_over
from cdc_lakehouse.silver.plan import MOST_PARTS
from cdc_lakehouse.silver.read import bronze_rows, changed_behind, events, work_of
from cdc_lakehouse.silver.refused import may_have_gone_back, refuse_what_went_back
from cdc_lakehouse.silver.rekeying import rekeyed, with_told_keys
from cdc_lakehouse.silver.shape import plan_shape
from cdc_lakehouse.silver.shaping import shaped


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
    changed = [rows.where(behind).select("key")] if task.late or task.read_again or task.redo else []
    if task.releases:
        changed.append(rows.where(waits(rows)).select("key"))
    parked = 0
    if task.holds:
        cases = waiting(rows, table=name)
        rows, whole = without_waiting(rows, cases), work
        work = without_waiting(whole, cases)
        parked = events(whole).count() - events(work).count()
    if own is not None:
        refuse_double_keys(session, lake, task, rows, work, columns=shape.columns, facts=facts)
    found, held = events(work), events(rows)
    found = with_one_commit(found, recommitted(found)) if facts.sends_again else found
    anew = keys_anew(session, lake, task, shape.columns, facts=facts, held=held, work=found, changed=changed)
    return Work(rows, found, anew.keys, shape.columns, facts, undecodable, parked, anew.refused, anew.fills)


def _refuse_other_settings(
    session: SparkSession, lake: Lake, task: MergeTask, bronze: TableColumns, *, secret: MaskSecret | None
) -> None:
    before = task.before.applied
    if task.before.seq == 0 or before.made_by == settings_of(task.table, secret):
        return
    silver = schema_of(session, lake.silver(task.table.name))
    existing = () if silver is None else silver.names
    refuse_other_settings(before, task.table, bronze, secret=secret, existing=existing)

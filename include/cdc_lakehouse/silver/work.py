"""What a merge looks at: the events that silver has not applied, and the keys whose past has changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession

from cdc_lakehouse.config.mask_secret import MaskSecret
from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.lake.bronze_schema import columns_in
from cdc_lakehouse.lake.cases import waits
from cdc_lakehouse.lake.ledger import topics_of, topics_with_records
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
from cdc_lakehouse.silver.missing_rows import refuse_missing_rows
from cdc_lakehouse.silver.own_key.checks import refuse_double_keys, refuse_untold_keys
from cdc_lakehouse.silver.own_key.key_columns import OwnKey, own_key
from cdc_lakehouse.silver.own_key.rekeying import rekeyed, with_told_keys
from cdc_lakehouse.silver.own_key.topic_key import (
    columns_with_topic,
    may_share_keys,
    refuse_shared_keys,
    with_topic_in_key,
)
from cdc_lakehouse.silver.passed_over import passed_over
from cdc_lakehouse.silver.plan import MOST_PARTS
from cdc_lakehouse.silver.read import bronze_rows, changed_behind, events, work_of
from cdc_lakehouse.silver.schema.dropped import DroppedColumns, unsent_of, with_untold_columns
from cdc_lakehouse.silver.schema.filling import AddedColumn, added_columns, with_defaults


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
    treated: Mapping[str, str] = field(default_factory=dict)
    """Column of bronze that the source does not send any more -> what silver has in it."""
    dropped: DroppedColumns = field(default_factory=DroppedColumns)
    """The same of silver's columns, and what changes with this merge."""
    added: Mapping[str, AddedColumn] = field(default_factory=dict)
    """Columns of silver that the source added with a default."""


@dataclass(frozen=True, slots=True)
class _Bronze:
    """As silver takes it: in its columns, under its key."""

    told: DataFrame
    """As bronze tells it."""
    rows: DataFrame
    own: OwnKey | None
    columns: TableColumns
    known: TableColumns
    """Bronze's own."""
    names: Mapping[str, str]
    """Column of bronze -> silver's name of it, for those that silver has."""


def work_at(session: SparkSession, lake: Lake, task: MergeTask, *, secret: MaskSecret | None) -> Work:
    """Raises for what cannot be applied."""
    behind = changed_behind(task.held, together(task.late, task.read_again), task.redo)
    is_work = work_of(task.held, task.work) | behind
    bronze, facts, dropped, added = _looked_at(session, lake, task, is_work, secret=secret)
    rows = bronze.rows if bronze.own is None else with_told_keys(bronze.rows)
    work = rows.where(is_work)
    if may_share_keys(task.table, task.held):
        refuse_shared_keys(rows, work, table=task.table.name)
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
    return Work(
        rows,
        found,
        anew.keys,
        bronze.columns,
        facts,
        undecodable,
        parked,
        anew.refused,
        anew.fills,
        treated=dropped.treated,
        dropped=dropped.renamed(bronze.names),
        added={bronze.names[name]: column for name, column in added.items() if name in bronze.names},
    )


def _looked_at(
    session: SparkSession, lake: Lake, task: MergeTask, is_work: Column, *, secret: MaskSecret | None
) -> tuple[_Bronze, WorkFacts, DroppedColumns, Mapping[str, AddedColumn]]:
    """Return bronze as silver takes it, what its work is, and columns that the source dropped or added: what
    writers do not send is untold, or the default, which is known only once the work was looked at."""
    told = bronze_rows(session, lake.bronze(task.table.name), version=task.bronze_version, held=task.held)
    bronze = _bronze(session, lake, task, told, secret=secret)
    facts = _examined(lake, task, bronze, is_work)
    unsent = unsent_of(
        task.table,
        lake.archives,
        bronze.known,
        held=task.held,
        before=task.before.applied,
        newest=facts.newest_writers,
        highest=facts.highest,
    )
    added = {} if not any(unsent.by_writer.values()) else _added(lake, task, bronze.known, unsent.columns)
    if unsent.columns.kept or added:
        told = with_untold_columns(told, unsent.by_writer, unsent.columns.kept)
        bronze = _bronze(session, lake, task, with_defaults(told, added), secret=secret)
    if unsent.columns.kept:
        facts = _examined(lake, task, bronze, is_work)
    return bronze, facts, unsent.columns, added


def _added(
    lake: Lake, task: MergeTask, known: TableColumns, dropped: DroppedColumns
) -> Mapping[str, AddedColumn]:
    """Without columns whose values are others in silver, and without those of a key."""
    table, key = task.table, {column.name for column in known.key}
    but = {*dropped.treated, *table.columns.mask, *key, *(table.key or ())}
    return added_columns(lake.archives, topics_with_records(task.held), known, but=but, table=table.name)


def _bronze(
    session: SparkSession, lake: Lake, task: MergeTask, told: DataFrame, *, secret: MaskSecret | None
) -> _Bronze:
    """Refuses settings that would make other rows than silver has."""
    name = task.table.name
    known = columns_in(told.schema)
    _refuse_other_settings(session, lake, task, known, secret=secret)
    refuse_history_of_others(lake, task.table, known, secret)
    own = own_key(known, task.table)
    shape = plan_shape(known if own is None else own.columns, task.table.columns, table=name)
    rows, topic = shaped(rekeyed(told, own), shape, secret=secret), task.table.topic_column
    columns, names = shape.columns, {each.source.name: each.column.name for each in shape.row}
    if topic is not None:
        rows, columns = with_topic_in_key(rows, topic), columns_with_topic(columns, topic, table=name)
    return _Bronze(told, rows, own, columns, known, names)


def _examined(lake: Lake, task: MergeTask, bronze: _Bronze, is_work: Column) -> WorkFacts:
    """Refuses events that cannot be applied, a source that went back, and keys that are not told."""
    topics = len(topics_of(task.held))
    work = bronze.rows.where(is_work)
    facts = examine(work, table=task.table.name, topics=topics, by_key=bronze.own is None)
    refuse_missing_rows(task, bronze.told, read=facts.read)
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

"""What a merge looks at: the events that silver has not applied, and the keys whose past has changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession

from cdc_lakehouse.config.mask_secret import MaskSecret
from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.lake.applied import NewestWriter
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
from cdc_lakehouse.silver.late.interval_keys import keys_of_interval, with_truncates
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
from cdc_lakehouse.silver.schema.dropped import DroppedColumns, Unsent, unsent_of, with_unsent_columns
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
    """Such columns of silver, and the changes of them in this merge."""
    added: Mapping[str, AddedColumn] = field(default_factory=dict)
    """Columns of silver that the source added with a default."""
    writers: Mapping[str, NewestWriter] = field(default_factory=dict)
    """The newest writer of each topic so far."""
    in_doubt: int = 0
    """Keys of a recomputed interval that stay as silver has them: bronze may have lost their newest event."""
    clears_again: bool = False
    """Whether a recomputed interval has a truncate that silver has passed."""


@dataclass(frozen=True, slots=True)
class _Bronze:
    """Rows of bronze, as they are and as silver takes them: in its columns, under its key."""

    raw: DataFrame
    rows: DataFrame
    own: OwnKey | None
    columns: TableColumns
    """Silver's."""
    raw_columns: TableColumns
    names: Mapping[str, str]
    """Column of bronze -> silver's name of it, for those that silver has."""


def work_at(session: SparkSession, lake: Lake, task: MergeTask, *, secret: MaskSecret | None) -> Work:
    """Raises for what cannot be applied."""
    behind = changed_behind(task.held, together(task.late, task.read_again), task.redo)
    is_work = work_of(task.held, task.work) | behind
    bronze, facts, unsent, added = _examined_bronze(session, lake, task, is_work, secret=secret)
    rows = bronze.rows if bronze.own is None else with_told_keys(bronze.rows)
    work = rows.where(is_work)
    if may_share_keys(task.table, task.held):
        refuse_shared_keys(rows, work, table=task.table.name)
    undecodable = passed_over(work, task.held, most=MOST_PARTS) if facts.undecoded else {}
    changed = [rows.where(behind).select("key")] if task.late or task.read_again or task.redo else []
    in_doubt, passed = 0, facts.truncates
    if task.recomputed is not None:
        facts = with_truncates(facts, bronze.rows, is_work=is_work, interval=task.recomputed)
        again = keys_of_interval(
            session, lake, rows, bronze.columns, interval=task.recomputed, held=task.held, work=work
        )
        in_doubt = again.in_doubt
        changed.append(again.keys)
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
        treated=unsent.columns.treated,
        dropped=unsent.columns.renamed(bronze.names),
        added={bronze.names[name]: column for name, column in added.items() if name in bronze.names},
        writers=unsent.writers,
        in_doubt=in_doubt,
        clears_again=facts.truncates > passed,
    )


def _examined_bronze(
    session: SparkSession, lake: Lake, task: MergeTask, is_work: Column, *, secret: MaskSecret | None
) -> tuple[_Bronze, WorkFacts, Unsent, Mapping[str, AddedColumn]]:
    """Return bronze as silver takes it, facts about the work, and columns that the source dropped or added.

    A column that a writer does not send is unavailable in its rows, or has its default there. Which columns
    these are is known only after a first look at the work.
    """
    raw = bronze_rows(session, lake.bronze(task.table.name), version=task.bronze_version, held=task.held)
    bronze = _bronze(session, lake, task, raw, secret=secret)
    facts = _examine_work(task, bronze, is_work)
    _refuse_unfit_work(lake, task, bronze, is_work, facts=facts)
    unsent = unsent_of(
        task.table,
        lake.archives,
        bronze.raw_columns,
        held=task.held,
        before=task.before.applied,
        newest=facts.newest_writers,
        highest=facts.highest,
    )
    all_alike = not any(unsent.by_writer.values())
    added = {} if all_alike else _columns_with_default(lake, task, bronze.raw_columns, unsent.columns)
    if unsent.columns.kept or added:
        raw = with_unsent_columns(raw, unsent.by_writer, unsent.columns.kept)
        bronze = _bronze(session, lake, task, with_defaults(raw, added), secret=secret)
    if unsent.columns.kept:
        facts = _examine_work(task, bronze, is_work)
    return bronze, facts, unsent, added


def _columns_with_default(
    lake: Lake, task: MergeTask, columns: TableColumns, dropped: DroppedColumns
) -> Mapping[str, AddedColumn]:
    """Return the added columns of bronze, except those of a key and those that silver masks."""
    table, key = task.table, {column.name for column in columns.key}
    but = {*dropped.treated, *table.columns.mask, *key, *(table.key or ())}
    return added_columns(lake.archives, topics_with_records(task.held), columns, but=but, table=table.name)


def _bronze(
    session: SparkSession, lake: Lake, task: MergeTask, raw: DataFrame, *, secret: MaskSecret | None
) -> _Bronze:
    """Return bronze in silver's columns and under its key. Raise for settings that make other rows."""
    name = task.table.name
    raw_columns = columns_in(raw.schema)
    _refuse_other_settings(session, lake, task, raw_columns, secret=secret)
    refuse_history_of_others(lake, task.table, raw_columns, secret)
    own = own_key(raw_columns, task.table)
    shape = plan_shape(raw_columns if own is None else own.columns, task.table.columns, table=name)
    rows, topic = shaped(rekeyed(raw, own), shape, secret=secret), task.table.topic_column
    columns, names = shape.columns, {field.source.name: field.column.name for field in shape.row}
    if topic is not None:
        rows, columns = with_topic_in_key(rows, topic), columns_with_topic(columns, topic, table=name)
    return _Bronze(raw, rows, own, columns, raw_columns, names)


def _examine_work(task: MergeTask, bronze: _Bronze, is_work: Column) -> WorkFacts:
    """Raise for events that cannot be applied."""
    topics, work = len(topics_of(task.held)), bronze.rows.where(is_work)
    return examine(work, table=task.table.name, topics=topics, by_key=bronze.own is None)


def _refuse_unfit_work(
    lake: Lake, task: MergeTask, bronze: _Bronze, is_work: Column, *, facts: WorkFacts
) -> None:
    """Raise for rows that are missing, a source that went back, and events without the table's key."""
    refuse_missing_rows(task, bronze.raw, read=facts.read)
    if may_have_gone_back(facts, before=task.before.applied, held=task.held, work=task.work):
        refuse_what_went_back(bronze.raw, held=task.held, work=task.work)
    if bronze.own is not None:
        refuse_untold_keys(lake, task, bronze.raw.where(is_work), bronze.own, facts=facts)


def _refuse_other_settings(
    session: SparkSession, lake: Lake, task: MergeTask, bronze: TableColumns, *, secret: MaskSecret | None
) -> None:
    before = task.before.applied
    if task.before.seq == 0 or before.made_by == settings_of(task.table, secret):
        return
    silver = schema_of(session, lake.silver(task.table.name))
    existing = () if silver is None else silver.names
    refuse_other_settings(before, task.table, bronze, secret=secret, existing=existing)

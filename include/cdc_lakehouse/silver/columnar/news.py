"""What a merge without Spark reads of bronze, and which merges it leaves to the general one."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from cdc_lakehouse.config.models import Mode
from cdc_lakehouse.debezium.columns import Column, TableColumns
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.rows import nullable_schema
from cdc_lakehouse.lake.snapshot import Snapshot, snapshot_at
from cdc_lakehouse.silver.columnar.bronze_rows import read_work
from cdc_lakehouse.silver.columnar.event_facts import examine_plain_rows
from cdc_lakehouse.silver.examine import WorkFacts
from cdc_lakehouse.silver.late.refused import may_have_gone_back
from cdc_lakehouse.silver.look import MergeTask
from cdc_lakehouse.silver.made_by import settings_of
from cdc_lakehouse.silver.own_key.topic_key import may_share_keys
from cdc_lakehouse.silver.plan import rows_committed
from cdc_lakehouse.silver.schema.dropped import DroppedColumns, Unsent, unsent_of

MOST_OFFSETS = 200_000
"""News of a table above this is work for Spark, which spreads it over its tasks."""


class GeneralMergeNeededError(Exception):
    """Nothing was written: the table, or its news, is more than a merge without Spark does. Says why."""


@dataclass(frozen=True, slots=True)
class News:
    rows: pa.Table
    """Rows of bronze that silver has not applied."""
    columns: TableColumns
    facts: WorkFacts
    unsent: Unsent


def read_news(lake: Lake, task: MergeTask) -> News:
    """Return the rows of bronze that a merge is to apply. Raise `GeneralMergeNeededError`."""
    refuse_other_tasks(task)
    bronze = snapshot_at(lake.bronze(task.table.name), task.bronze_version)
    if bronze is None or not {"key", "after"} <= set(bronze.schema.names):
        raise GeneralMergeNeededError("bronze has no keys yet")
    columns = _columns_of(bronze)
    if any(pa.types.is_floating(column.type) for column in columns.key):
        raise GeneralMergeNeededError(
            "a key of floating numbers, whose zeros and NaNs Spark compares as values"
        )
    rows = read_work(bronze, task.work, held=task.held)
    facts = examine_plain_rows(rows)
    if facts is None:
        raise GeneralMergeNeededError("records that are not one event of a row each")
    if rows_committed(task.held, task.before) not in (None, facts.read):
        raise GeneralMergeNeededError("another number of rows than was committed")
    if may_have_gone_back(facts, before=task.before.applied, held=task.held, work=task.work):
        raise GeneralMergeNeededError("events below what silver has applied")
    unsent = unsent_of(
        task.table,
        lake.archives,
        columns,
        held=task.held,
        before=task.before.applied,
        newest=facts.newest_writers,
        highest=facts.highest,
    )
    if any(unsent.by_writer.values()) or unsent.columns != DroppedColumns():
        raise GeneralMergeNeededError("columns that not every writer sends")
    return News(rows, columns, facts, unsent)


def refuse_other_tasks(task: MergeTask) -> None:
    """Raise `GeneralMergeNeededError` unless only new events of known keys and columns are to be applied."""
    table, applied = task.table, task.before.applied
    offsets = sum(until - start for spans in task.work.values() for start, until in spans.values())
    reasons = {
        "a table without one row per key": task.mode is not Mode.UPSERT,
        "the first merge": task.silver_stated is None or task.before.seq == 0,
        "rows behind what silver has applied": task.late or task.read_again or task.redo or task.buries_again,
        "keys that wait for a record": task.holds or task.releases or task.before.parked,
        "a decision of a person": task.interval is not None or task.sweeps or task.accepted is not None,
        "values or rows that are still to come": applied.unfilled or applied.complete is not None,
        "dropped columns": applied.dropped,
        "a filter": table.filter is not None,
        "a key of its own": table.key is not None or table.topic_column is not None,
        "a choice of columns": not table.columns.is_all or applied.made_by != settings_of(table, None),
        "a table without deletion vectors": not table.deletion_vectors,
        "several topics": may_share_keys(table, task.held),
        "many changes": offsets > MOST_OFFSETS,
    }
    for reason, holds in reasons.items():
        if holds:
            raise GeneralMergeNeededError(reason)


def _columns_of(bronze: Snapshot) -> TableColumns:
    schema = nullable_schema(bronze)
    key, row = (
        tuple(Column(field.name, field.type) for field in schema.field(name).type)
        for name in ("key", "after")
    )
    return TableColumns(key=key, row=row)

"""Merge one table: the bronze rows that silver has not applied, folded, in one commit."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.config.models import Deletes
from cdc_lakehouse.contract import TableResult, TableStatus
from cdc_lakehouse.errors import DeletedRowsKeptError
from cdc_lakehouse.lake.ledger import Ledger, by_topic
from cdc_lakehouse.lake.spans import offsets_in
from cdc_lakehouse.lake.tables import create_if_missing, schema_of
from cdc_lakehouse.silver.changed_keys import ChangedKeys
from cdc_lakehouse.silver.changes import Changes, changes_of
from cdc_lakehouse.silver.evolution import SYSTEM_PREFIX, refuse_system_names
from cdc_lakehouse.silver.follow import follow_bronze
from cdc_lakehouse.silver.look import MergeTask
from cdc_lakehouse.silver.merge import MergeResult, merge
from cdc_lakehouse.silver.merge_plan import DELETED, MergePlan
from cdc_lakehouse.silver.plan import next_ledger, standing_on
from cdc_lakehouse.silver.refold import REFOLDED
from cdc_lakehouse.silver.replace_rows import MOST_CHANGES, replace_rows, suits
from cdc_lakehouse.silver.table_schema import (
    add_system_columns,
    as_wide_as,
    silver_properties,
    silver_schema,
    switch_vectors,
)
from cdc_lakehouse.silver.tombstones import bury

logger = logging.getLogger(__name__)


def merge_table(application: Application, task: MergeTask) -> TableResult:
    """Carry out what a look has found. A second call with the same task is refused as superseded."""
    session = application.spark.isolated(small=task.small)
    table, lake = task.table, application.lake
    started = time.monotonic()
    changes = changes_of(session, lake, task)
    if changes.facts.events <= MOST_CHANGES:
        changes.rows.persist()
    uri = lake.silver(table.name)
    rows, is_new = _fitted(session, application, task, changes)
    read = time.monotonic()
    ledger = _ledger(application, task, changes)
    plan = MergePlan(
        keys=tuple(column.name for column in changes.columns.key),
        names=tuple(name for name in rows.columns if not name.startswith(SYSTEM_PREFIX)),
        deletes=table.deletes,
        lacking=changes.lacking,
        cleared=None if changes.applied.cleared == task.before.applied.cleared else changes.applied.cleared,
        refolds=REFOLDED in rows.columns,
    )
    if table.deletes is Deletes.HARD and (is_new or plan.refolds or changes.facts.deletes):
        bury(session, lake.tombstones(table.name), changes.rows, changes.columns, anew=is_new)
    result = _applied(session, task, changes, rows, plan=plan, ledger=ledger, uri=uri)
    changes.rows.unpersist()
    seconds = {"read": round(read - started, 3), "merge": round(time.monotonic() - read, 3)}
    logger.info("merge committed", extra={"seq": ledger.seq, "events": changes.facts.events})
    return _told(task, changes=changes, result=result, ledger=ledger, seconds=seconds)


def _applied(
    session: SparkSession,
    task: MergeTask,
    changes: Changes,
    rows: DataFrame,
    *,
    plan: MergePlan,
    ledger: Ledger,
    uri: str,
) -> MergeResult:
    facts, reached = changes.facts, task.before.applied.reached
    table = schema_of(session, uri)
    if facts.events > MOST_CHANGES or table is None:
        return merge(session, uri, changes=rows, plan=plan, ledger=ledger)
    if not suits(plan, rows, table):
        keys = ChangedKeys.of(rows, plan.keys)
        return merge(session, uri, changes=rows, plan=plan, ledger=ledger, keys=keys)
    certain = (
        not (plan.refolds or facts.snapshot_rows)
        and facts.lowest is not None
        and reached is not None
        and facts.lowest > reached
    )
    return replace_rows(session, uri, changes=rows, plan=plan, ledger=ledger, certain=certain)


def _fitted(
    session: SparkSession, application: Application, task: MergeTask, changes: Changes
) -> tuple[DataFrame, bool]:
    """Silver gets the columns of the changes, and they get those that only silver has. True if it is new."""
    table, columns = task.table, changes.columns
    refuse_system_names(tuple(column.name for column in columns.row), table=table.name)
    uri = application.lake.silver(table.name)
    wanted = silver_schema(changes.rows.schema, deletes=table.deletes)
    existing = schema_of(session, uri)
    if existing is None:
        create_if_missing(
            session, uri, schema=wanted, properties=silver_properties(vectors=table.deletion_vectors)
        )
        return changes.rows, True
    if DELETED in existing.names and table.deletes is Deletes.HARD:
        raise DeletedRowsKeptError(table=table.name)
    follow_bronze(session, application, task, existing=existing, wanted=wanted, columns=columns)
    switch_vectors(session, uri, on=table.deletion_vectors)
    add_system_columns(session, uri, existing=existing, wanted=wanted)
    return as_wide_as(existing, changes.rows), False


def _ledger(application: Application, task: MergeTask, changes: Changes) -> Ledger:
    seen = changes.facts.seen_through
    ledger = next_ledger(
        task.before,
        task.held,
        task.work,
        attempt=application.attempt,
        seen_through=seen.isoformat() if seen is not None else None,
        applied=changes.applied,
        parked=task.holds and (task.before.parked or changes.parked > 0),
    )
    return standing_on(
        task.held,
        ledger,
        version=task.stated,
        undecodable=changes.undecodable,
        read_again=task.read_again,
    )


def _told(
    task: MergeTask, *, changes: Changes, result: MergeResult, ledger: Ledger, seconds: Mapping[str, float]
) -> TableResult:
    facts = changes.facts
    seen = facts.seen_through
    return TableResult(
        table=task.table.name,
        status=TableStatus.ADVANCED,
        ranges=by_topic(ledger.added),
        counts={
            "read": facts.read,
            "events": facts.events,
            "ignored": facts.ignored,
            "undecodable": facts.undecodable,
            "truncates": facts.truncates,
            "parked": changes.parked,
            "decoded_again": sum(each.rows for each in task.redo),
            "late_offsets": offsets_in(task.late),
            "rows_inserted": result.inserted,
            "rows_updated": result.updated,
            "rows_deleted": result.deleted,
        },
        errors_by_code=facts.errors_by_code,
        open_cases=task.open_cases,
        seen_through=ledger.seen_through,
        lag_seconds=None if seen is None else round((datetime.now(UTC) - seen).total_seconds(), 1),
        seconds=seconds,
        versions={"bronze": task.bronze_version, "silver": result.version},
    )

"""Merge one table: the bronze rows that silver has not applied, folded, in one commit."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.contract import TableResult, TableStatus
from cdc_lakehouse.lake.ledger import Ledger, by_topic
from cdc_lakehouse.lake.spans import offsets_in
from cdc_lakehouse.lake.tables import create_if_missing, schema_of
from cdc_lakehouse.silver.changes import Changes, changes_of
from cdc_lakehouse.silver.evolution import refuse_system_names
from cdc_lakehouse.silver.follow import follow_bronze
from cdc_lakehouse.silver.look import MergeTask
from cdc_lakehouse.silver.merge import MergeResult, merge
from cdc_lakehouse.silver.plan import next_ledger, standing_on
from cdc_lakehouse.silver.refold import REFOLDED
from cdc_lakehouse.silver.table_schema import SILVER_PROPERTIES, as_wide_as

logger = logging.getLogger(__name__)


def merge_table(application: Application, task: MergeTask) -> TableResult:
    """Carry out what a look has found. A second call with the same task is refused as superseded."""
    session = application.spark.isolated(small=task.small)
    table = task.table
    started = time.monotonic()
    bronze = application.lake.bronze(table.name)
    changes = changes_of(session, bronze, task)
    rows, columns, facts = changes.rows.drop(REFOLDED), changes.columns, changes.facts
    uri = application.lake.silver(table.name)
    refuse_system_names(tuple(column.name for column in columns.row), table=table.name)
    existing = schema_of(session, uri)
    whole = changes.rows
    if existing is None:
        create_if_missing(session, uri, schema=rows.schema, properties=SILVER_PROPERTIES)
    else:
        whole = as_wide_as(existing, changes.rows)
        follow_bronze(session, application, task, existing=existing, wanted=rows.schema, columns=columns)
    read = time.monotonic()
    seen = facts.seen_through.isoformat() if facts.seen_through is not None else None
    ledger = next_ledger(
        task.before,
        task.held,
        task.work,
        attempt=application.attempt,
        seen_through=seen,
        parked=task.holds and (task.before.parked or changes.parked > 0),
    )
    ledger = standing_on(
        task.held,
        ledger,
        version=task.stated,
        undecodable=changes.undecodable,
        read_again=task.read_again,
    )
    result = merge(session, uri, changes=whole, columns=columns, ledger=ledger)
    seconds = {"read": round(read - started, 3), "merge": round(time.monotonic() - read, 3)}
    logger.info("merge committed", extra={"seq": ledger.seq, "events": facts.events})
    return _told(task, changes=changes, result=result, ledger=ledger, seconds=seconds)


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

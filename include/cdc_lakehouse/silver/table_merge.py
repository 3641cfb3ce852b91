"""Merge one table: the bronze rows that silver has not applied, folded, in one commit."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import TableResult, TableStatus
from cdc_lakehouse.lake.bronze_schema import columns_in
from cdc_lakehouse.lake.ledger import Ledger, Ranges, by_topic
from cdc_lakehouse.lake.state import TableState, read_state
from cdc_lakehouse.lake.tables import create_if_missing, schema_of
from cdc_lakehouse.silver.fold import folded
from cdc_lakehouse.silver.merge import MergeResult, merge
from cdc_lakehouse.silver.plan import (
    first_ledger,
    is_small,
    next_ledger,
    plan_columns,
    plan_work,
    refuse_system_names,
)
from cdc_lakehouse.silver.read import WorkFacts, events, examine, work_rows
from cdc_lakehouse.silver.table_schema import SILVER_PROPERTIES, apply_columns, source_types

logger = logging.getLogger(__name__)


def merge_table(application: Application, table: Table) -> TableResult:
    """A second call finds nothing left to do and reports `idle`."""
    lake = application.lake
    bronze = read_state(lake.bronze(table.name), table=table.name)
    if bronze is None or bronze.ledger is None:
        return TableResult(table=table.name, status=TableStatus.IDLE)
    silver = read_state(lake.silver(table.name), table=table.name)
    before = first_ledger(bronze.ledger) if silver is None or silver.ledger is None else silver.ledger
    work = plan_work(bronze.ledger, before)
    if not work:
        return TableResult(table=table.name, status=TableStatus.IDLE)
    logger.info("merge planned", extra={"ranges": work})
    if application.request.dry_run:
        return TableResult(table=table.name, status=TableStatus.IDLE, ranges=by_topic(work))
    size = silver.size_bytes if silver is not None else 0
    session = application.spark.isolated(small=is_small(work, table_bytes=size))
    return _merge(session, application, table, bronze=bronze, held=bronze.ledger, before=before, work=work)


def _merge(
    session: SparkSession,
    application: Application,
    table: Table,
    *,
    bronze: TableState,
    held: Ledger,
    before: Ledger,
    work: Ranges,
) -> TableResult:
    started = time.monotonic()
    uri = application.lake.bronze(table.name)
    rows = work_rows(session, uri, version=bronze.version, held=held, work=work)
    columns = columns_in(rows.schema)
    facts = examine(rows, table=table.name)
    changes = folded(events(rows), columns)
    uri = application.lake.silver(table.name)
    refuse_system_names(tuple(column.name for column in columns.row), table=table.name)
    existing = schema_of(session, uri)
    if existing is None:
        create_if_missing(session, uri, schema=changes.schema, properties=SILVER_PROPERTIES)
    else:
        wanted = source_types(changes.schema)
        apply_columns(session, uri, plan_columns(source_types(existing), wanted, table=table.name))
    read = time.monotonic()
    seen = facts.seen_through.isoformat() if facts.seen_through is not None else None
    ledger = next_ledger(before, held, work, attempt=application.attempt, seen_through=seen)
    result = merge(session, uri, changes=changes, columns=columns, ledger=ledger)
    seconds = {"read": round(read - started, 3), "merge": round(time.monotonic() - read, 3)}
    logger.info("merge committed", extra={"seq": ledger.seq, "events": facts.events})
    return _told(table.name, facts=facts, result=result, ledger=ledger, bronze=bronze, seconds=seconds)


def _told(
    table: str,
    *,
    facts: WorkFacts,
    result: MergeResult,
    ledger: Ledger,
    bronze: TableState,
    seconds: Mapping[str, float],
) -> TableResult:
    seen = facts.seen_through
    return TableResult(
        table=table,
        status=TableStatus.ADVANCED,
        ranges=by_topic(ledger.added),
        counts={
            "read": facts.read,
            "events": facts.events,
            "ignored": facts.ignored,
            "undecodable": facts.undecodable,
            "rows_inserted": result.inserted,
            "rows_updated": result.updated,
            "rows_deleted": result.deleted,
        },
        errors_by_code=facts.errors_by_code,
        seen_through=ledger.seen_through,
        lag_seconds=None if seen is None else round((datetime.now(UTC) - seen).total_seconds(), 1),
        seconds=seconds,
        versions={"bronze": bronze.version, "silver": result.version},
    )

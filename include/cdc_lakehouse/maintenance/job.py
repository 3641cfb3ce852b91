"""Run one kind of maintenance over the tables of a pipeline, one after another."""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime, timedelta

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.discovered import with_discovered
from cdc_lakehouse.application.per_table import each_table
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.config.values import LOG_RETENTION_DAYS, duration
from cdc_lakehouse.contract import TableResult, TableStatus
from cdc_lakehouse.lake.attempts import AttemptRecord, forget_ended, oldest_writer, read_attempts
from cdc_lakehouse.lake.damage import heal_beside_silver, refuse_missing_files
from cdc_lakehouse.lake.state import is_there, read_state
from cdc_lakehouse.maintenance.clean import clean_checkpoints
from cdc_lakehouse.maintenance.forget import forget
from cdc_lakehouse.maintenance.optimize import optimize
from cdc_lakehouse.maintenance.restate import is_due, restate
from cdc_lakehouse.maintenance.vacuum import vacuum

logger = logging.getLogger(__name__)


def optimize_tables(application: Application) -> list[TableResult]:
    def work(table: Table) -> TableResult:
        started = time.monotonic()
        uris = _existing(application, table)
        skipped = 0
        for uri in () if application.request.dry_run else uris:
            skipped += not optimize(application.session(), uri)
        return _done(table, {"tables": len(uris), "skipped": skipped}, started=started)

    return each_table(with_discovered(application), work)


def vacuum_tables(application: Application) -> list[TableResult]:
    """Delete old files of each table, none that is younger than the oldest attempt that may still commit."""
    retention = duration(application.pipeline.maintenance.vacuum_retention)
    forgotten = duration(application.pipeline.maintenance.tombstone_retention)
    spared_for = _attempt_older_than(retention, application)

    def work(table: Table) -> TableResult:
        started = time.monotonic()
        uris = _existing(application, table)
        counts = {"tables": len(uris), "skipped": 0}
        if application.request.dry_run:
            return _done(table, counts, started=started)
        tombstones = application.lake.tombstones(table.name)
        if tombstones in uris:
            before = datetime.now(UTC) - forgotten
            counts["skipped"] += not forget(application.session(), tombstones, before=before)
        counts["restated"] = _restate_ledgers(application, table)
        if spared_for is not None:
            facts = {"running": spared_for.attempt, "began": spared_for.began.isoformat()}
            logger.warning("files are kept: an attempt has run longer than the retention", extra=facts)
            return _done(table, {**counts, "skipped": len(uris)}, started=started)
        beside = application.lake.beside_silver(table.name)
        for uri in uris:
            log_retention = None if uri in beside else timedelta(days=LOG_RETENTION_DAYS)
            session = application.spark.isolated()
            vacuum(session, uri, retention=retention, log_retention=log_retention)
        return _done(table, counts, started=started)

    return each_table(with_discovered(application), work)


def _restate_ledgers(application: Application, table: Table) -> int:
    """Commit old ledgers of bronze and silver again before they expire, and return how many."""
    restated = 0
    for uri in (application.lake.bronze(table.name), application.lake.silver(table.name)):
        state = read_state(uri, table=table.name)
        if state is not None and is_due(state, now=datetime.now(UTC)):
            restated += restate(application.session(), uri, state)
    return restated


def _attempt_older_than(retention: timedelta, application: Application) -> AttemptRecord | None:
    """Return the oldest attempt that may still write, if it began before the retention."""
    now = datetime.now(UTC)
    records = _read_attempts(application).values()
    oldest = oldest_writer(records, now=now, besides=application.attempt)
    return oldest if oldest is not None and oldest.began < now - retention else None


def _read_attempts(application: Application) -> dict[str, AttemptRecord]:
    """Read the records, and note torn ones: they end up in the report of the run."""
    longest = duration(application.pipeline.execution_timeout)
    records = read_attempts(application.lake, longest=longest)
    torn = [name for name, record in records.items() if record.is_torn]
    if torn:
        application.notes["torn_attempt_records"] = torn
    return records


def clean_tables(application: Application) -> list[TableResult]:
    """Needs no Spark, so none is started."""
    retention = duration(application.pipeline.maintenance.checkpoint_retention)
    now, dry_run = datetime.now(UTC), application.request.dry_run
    records = _read_attempts(application)

    def work(table: Table) -> TableResult:
        started = time.monotonic()
        deleted = clean_checkpoints(
            application.lake, table.name, records=records, now=now, retention=retention, dry_run=dry_run
        )
        return _done(table, {"checkpoints": deleted}, started=started)

    results = each_table(with_discovered(application), work)
    if not dry_run:
        forget_ended(application.lake, records, now=now, retention=retention)
    return results


def _existing(application: Application, table: Table) -> list[str]:
    """Return the URIs of the tables that exist. Raises `DataFilesGoneError`: other jobs skip quiet tables."""
    lake, name, existing = application.lake, table.name, []
    for uri in (lake.bronze(name), lake.silver(name)):
        state = read_state(uri, table=name)
        if state is not None:
            refuse_missing_files(uri, state.files, table=name)
            existing.append(uri)
    if not application.request.dry_run:
        heal_beside_silver(lake, name)
    return [*existing, *(uri for uri in lake.beside_silver(name) if is_there(uri))]


def _done(table: Table, counts: dict[str, int], *, started: float) -> TableResult:
    """Maintenance moves no ledger, so a table never counts as advanced by it."""
    seconds = {"all": round(time.monotonic() - started, 3)}
    return TableResult(table=table.name, status=TableStatus.IDLE, counts=counts, seconds=seconds)

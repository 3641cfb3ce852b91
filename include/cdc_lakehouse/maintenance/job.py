"""Run one kind of maintenance over the tables of a pipeline, one after another."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.discovered import with_discovered
from cdc_lakehouse.application.per_table import each_table
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.config.values import LOG_RETENTION_DAYS, duration
from cdc_lakehouse.contract import TableResult, TableStatus
from cdc_lakehouse.lake.attempts import AttemptRecord, forget_ended, oldest_writer, read_attempts
from cdc_lakehouse.lake.damage import heal_beside_silver, refuse_missing_files
from cdc_lakehouse.lake.health import health_of
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
        counts = {"tables": len(uris), "skipped": 0, "files_packed": 0, "files_written": 0}
        before = _health_of(uris)
        for uri in () if application.request.dry_run else uris:
            packed = optimize(application.session(), uri)
            counts["skipped"] += packed is None
            counts["files_packed"] += 0 if packed is None else packed.removed
            counts["files_written"] += 0 if packed is None else packed.added
        return _done(table, counts, started=started, before=before, uris=uris)

    return each_table(with_discovered(application), work)


def vacuum_tables(application: Application) -> list[TableResult]:
    """Delete old files of each table, none that is younger than the oldest attempt that may still commit."""
    retention = duration(application.pipeline.maintenance.vacuum_retention)
    forgotten = duration(application.pipeline.maintenance.tombstone_retention)
    spared_for = _attempt_older_than(retention, application)

    def work(table: Table) -> TableResult:
        started = time.monotonic()
        uris = _existing(application, table)
        counts = {"tables": len(uris), "skipped": 0, "files_deleted": 0, "bytes_reclaimed": 0}
        if application.request.dry_run:
            return _done(table, counts, started=started, before=_health_of(uris))
        before = _health_of(uris)
        tombstones = application.lake.tombstones(table.name)
        if tombstones in uris:
            oldest = datetime.now(UTC) - forgotten
            counts["skipped"] += not forget(application.session(), tombstones, before=oldest)
        counts["restated"] = _restate_ledgers(application, table)
        if spared_for is not None:
            facts = {"running": spared_for.attempt, "began": spared_for.began.isoformat()}
            logger.warning("files are kept: an attempt has run longer than the retention", extra=facts)
            return _done(table, {**counts, "skipped": len(uris)}, started=started, before=before)
        beside = application.lake.beside_silver(table.name)
        for uri in uris:
            log_retention = None if uri in beside else timedelta(days=LOG_RETENTION_DAYS)
            session = application.spark.isolated()
            reclaimed = vacuum(session, uri, retention=retention, log_retention=log_retention)
            counts["files_deleted"] += reclaimed.files
            counts["bytes_reclaimed"] += reclaimed.bytes
        return _done(table, counts, started=started, before=before, uris=uris)

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


def _health_of(uris: Sequence[str]) -> dict[str, dict[str, int | float]]:
    """Return what reading each table costs, by the end of its path: `bronze/shop/orders`."""
    found = {"/".join(uri.rsplit("/", 3)[1:]): health_of(uri) for uri in uris}
    return {name: health.document() for name, health in found.items() if health is not None}


def _done(
    table: Table,
    counts: dict[str, int],
    *,
    started: float,
    before: Mapping[str, Mapping[str, int | float]] | None = None,
    uris: Sequence[str] = (),
) -> TableResult:
    """Return the result of a table. Maintenance moves no ledger, so none counts as advanced by it.

    `before` is its health, measured once more at `uris` where something was done.
    """
    did = any(count for name, count in counts.items() if name not in ("tables", "skipped"))
    health = {} if before is None else {"before": before, "after": _health_of(uris) if did else before}
    return TableResult(
        table=table.name,
        status=TableStatus.MAINTAINED if did else TableStatus.IDLE,
        counts=counts,
        seconds={"all": round(time.monotonic() - started, 3)},
        health=health,
    )

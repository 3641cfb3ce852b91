"""Run one kind of maintenance over the tables of a pipeline, one after another."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.discovered import with_discovered
from cdc_lakehouse.application.per_table import UnfinishedError, each_table
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.config.values import LOG_RETENTION_DAYS, duration
from cdc_lakehouse.contract import Job, TableResult, TableStatus
from cdc_lakehouse.errors import OptimizeOverdueError
from cdc_lakehouse.lake.attempts import AttemptRecord, forget_ended, oldest_writer, read_attempts
from cdc_lakehouse.lake.damage import heal_beside_silver, refuse_missing_files
from cdc_lakehouse.lake.health import health_in, health_of
from cdc_lakehouse.lake.snapshot import Snapshot, newest_snapshot
from cdc_lakehouse.lake.state import is_there, read_state
from cdc_lakehouse.maintenance.clean import clean_checkpoints
from cdc_lakehouse.maintenance.forget import forget
from cdc_lakehouse.maintenance.leftovers import clean_leftovers
from cdc_lakehouse.maintenance.memory import Memory, read_memories, write_memories
from cdc_lakehouse.maintenance.optimize import Packed, optimize
from cdc_lakehouse.maintenance.plan import (
    OptimizePlan,
    VacuumKind,
    plan_optimize,
    vacuum_kind,
    what_only_delta_keeps,
)
from cdc_lakehouse.maintenance.quiet import QuietMoments
from cdc_lakehouse.maintenance.restate import is_due, restate
from cdc_lakehouse.maintenance.vacuum import Reclaimed, vacuum

logger = logging.getLogger(__name__)

_TRIES = 3
"""How often OPTIMIZE plans again what other commits left of its work."""


def optimize_tables(application: Application) -> list[TableResult]:
    """Write files again where it pays. A table that gives way to merges night after night is an error."""
    quiet = QuietMoments(application.lake, longest_attempt=duration(application.pipeline.execution_timeout))

    def work(table: Table) -> TableResult:
        started = time.monotonic()
        snapshots = {_name_of(each.uri): each for each in _snapshots(application, table)}
        plans = {name: _plan(each) for name, each in snapshots.items()}
        packed = {
            name: _optimize_if_it_pays(application, table, snapshots[name], plan, quiet)
            for name, plan in plans.items()
        }
        memories = _remember_conflicts(application, table, packed)
        result = _maintained(
            application,
            table,
            counts={
                "tables": len(plans),
                "skipped": sum(each.gave_way for each in packed.values()),
                "files_packed": sum(each.removed for each in packed.values()),
                "files_written": sum(each.added for each in packed.values()),
            },
            started=started,
            before={name: health_in(each).document() for name, each in snapshots.items()},
            facts={name: _optimize_facts(plans[name], packed[name], memories.get(name)) for name in plans},
            uris=[each.uri for each in snapshots.values()],
            has_work=any(plan.pays for plan in plans.values()),
        )
        overdue = _overdue(application, table, memories)
        if overdue is not None:
            raise UnfinishedError(result) from overdue
        return result

    return each_table(with_discovered(application), work)


def _optimize_if_it_pays(
    application: Application, table: Table, snapshot: Snapshot, plan: OptimizePlan, quiet: QuietMoments
) -> Packed:
    """Carry out a plan. An ingest only adds files to bronze, so nothing beside it conflicts there.

    Where other commits were faster, what they left of the work is planned again on the newest version.
    """
    packed = Packed()
    if application.request.dry_run:
        return packed
    for _ in range(_TRIES):
        if not plan.pays:
            break
        if snapshot.uri != application.lake.bronze(table.name):
            quiet.wait()
        done = optimize(application.spark.isolated(), snapshot, plan, attempt=application.attempt)
        packed = packed.followed_by(done)
        newest = newest_snapshot(snapshot.uri) if done.gave_way else None
        if newest is None:
            return packed
        snapshot, plan = newest, _plan(newest)
    # Where nothing pays any more, those who were faster did the work.
    return replace(packed, gave_way=packed.gave_way and plan.pays)


def _plan(snapshot: Snapshot) -> OptimizePlan:
    return plan_optimize(snapshot.files, left_to_delta=what_only_delta_keeps(snapshot))


def _remember_conflicts(
    application: Application, table: Table, packed: Mapping[str, Packed]
) -> dict[str, Memory]:
    """Return what is remembered of the tables from now on, and keep it where it changed."""
    uri = application.lake.maintenance(Job.OPTIMIZE, table.name)
    known = read_memories(uri)
    if application.request.dry_run:
        return known
    tonight = datetime.now(UTC).date()
    conflicts = {
        name: known.get(name, Memory()).with_conflict(tonight)
        for name, each in packed.items()
        if each.gave_way and not each.commits
    }
    if conflicts != known:
        write_memories(uri, conflicts)
    return conflicts


def _optimize_facts(plan: OptimizePlan, packed: Packed, memory: Memory | None) -> dict[str, Any]:
    """Return what the report says of one Delta table."""
    nights = 0 if memory is None else memory.conflict_nights
    return {
        "reason": plan.reason,
        "target_bytes": plan.target_bytes,
        "bytes_packed": packed.bytes,
        "commits": packed.commits,
        "conflict_nights": nights,
    }


def _overdue(
    application: Application, table: Table, memories: Mapping[str, Memory]
) -> OptimizeOverdueError | None:
    """Return the error of a table whose files nobody could pack for too many nights."""
    limit = application.pipeline.maintenance.conflict_nights
    late = {name: each.conflict_nights for name, each in memories.items() if each.conflict_nights >= limit}
    if not late or application.request.dry_run:
        return None
    return OptimizeOverdueError(table=table.name, nights=max(late.values()), where=", ".join(sorted(late)))


def vacuum_tables(application: Application) -> list[TableResult]:
    """Delete old files of each table, none that is younger than the oldest attempt that may still commit."""
    maintenance, dry_run = application.pipeline.maintenance, application.request.dry_run
    retention, forgotten = duration(maintenance.vacuum_retention), duration(maintenance.tombstone_retention)
    spared_for = _attempt_older_than(retention, application)

    def work(table: Table) -> TableResult:
        started = time.monotonic()
        uris = _existing(application, table)
        before = {_name_of(uri): health.document() for uri in uris if (health := health_of(uri)) is not None}
        memories = read_memories(application.lake.maintenance(Job.VACUUM, table.name))
        kinds = {uri: _kind_of_vacuum(uri, memories) for uri in uris}
        counts = {"tables": len(uris), "skipped": 0, "files_deleted": 0, "bytes_reclaimed": 0}
        if dry_run:
            return _maintained(
                application,
                table,
                counts=counts,
                started=started,
                before=before,
                facts={_name_of(uri): {"kind": kind} for uri, kind in kinds.items()},
                has_work=bool(uris),
            )
        tombstones = application.lake.tombstones(table.name)
        if tombstones in uris:
            oldest = datetime.now(UTC) - forgotten
            counts["skipped"] += not forget(application.session(), tombstones, before=oldest)
        counts["restated"] = _restate_ledgers(application, table)
        if spared_for is not None:
            running = {"running": spared_for.attempt, "began": spared_for.began.isoformat()}
            logger.warning("files are kept: an attempt has run longer than the retention", extra=running)
            skipped = {**counts, "skipped": len(uris)}
            return _maintained(application, table, counts=skipped, started=started, before=before)
        reclaimed = {uri: _vacuum(application, table, uri, kind, retention) for uri, kind in kinds.items()}
        _remember_full_vacuums(application, table, reclaimed, memories)
        counts["files_deleted"] = sum(each.files for each in reclaimed.values())
        counts["bytes_reclaimed"] = sum(each.bytes for each in reclaimed.values())
        return _maintained(
            application,
            table,
            counts=counts,
            started=started,
            before=before,
            facts={_name_of(uri): each.document() for uri, each in reclaimed.items()},
            uris=uris,
        )

    return each_table(with_discovered(application), work)


def _kind_of_vacuum(uri: str, memories: Mapping[str, Memory]) -> VacuumKind:
    memory = memories.get(_name_of(uri), Memory())
    return vacuum_kind(memory.last_full_vacuum, now=datetime.now(UTC))


def _vacuum(
    application: Application, table: Table, uri: str, kind: VacuumKind, retention: timedelta
) -> Reclaimed:
    is_beside = uri in application.lake.beside_silver(table.name)
    log_retention = None if is_beside else timedelta(days=LOG_RETENTION_DAYS)
    session = application.spark.isolated()
    return vacuum(session, uri, retention=retention, kind=kind, log_retention=log_retention)


def _remember_full_vacuums(
    application: Application, table: Table, reclaimed: Mapping[str, Reclaimed], memories: Mapping[str, Memory]
) -> None:
    """Keep when each table was listed as a whole, where that was now."""
    now = datetime.now(UTC)
    full = {
        _name_of(uri): memories.get(_name_of(uri), Memory()).with_full_vacuum(now)
        for uri, each in reclaimed.items()
        if each.kind is VacuumKind.FULL
    }
    if full:
        write_memories(application.lake.maintenance(Job.VACUUM, table.name), {**memories, **full})


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
    """Delete what ended attempts and tables that are gone have left. Needs no Spark, so none is started."""
    retention = duration(application.pipeline.maintenance.checkpoint_retention)
    now, dry_run = datetime.now(UTC), application.request.dry_run
    records = _read_attempts(application)

    def work(table: Table) -> TableResult:
        started = time.monotonic()
        deleted = clean_checkpoints(
            application.lake, table.name, records=records, now=now, retention=retention, dry_run=dry_run
        )
        return _maintained(
            application, table, counts={"checkpoints": deleted}, started=started, has_work=deleted > 0
        )

    application = with_discovered(application)
    results = each_table(application, work)
    if {table.name for table in application.tables} >= {table.name for table in application.pipeline.tables}:
        cleaned = clean_leftovers(application, records=records, now=now)
        application.notes.update({"cleaned": cleaned} if cleaned else {})
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


def _snapshots(application: Application, table: Table) -> list[Snapshot]:
    uris = _existing(application, table)
    return [snapshot for uri in uris if (snapshot := newest_snapshot(uri)) is not None]


def _name_of(uri: str) -> str:
    """Return the end of a table's path, which names it in reports: `bronze/shop/orders`."""
    return "/".join(uri.rsplit("/", 3)[1:])


def _maintained(
    application: Application,
    table: Table,
    *,
    counts: dict[str, int],
    started: float,
    before: Mapping[str, Mapping[str, int | float]] | None = None,
    facts: Mapping[str, Mapping[str, Any]] | None = None,
    uris: list[str] | None = None,
    has_work: bool = False,
) -> TableResult:
    """Return the result of a table. Maintenance moves no ledger, so none counts as advanced by it.

    `before` is its health, measured once more at `uris` where something was done. `has_work` says whether a
    dry run found any.
    """
    did = any(count for name, count in counts.items() if name not in ("tables", "skipped"))
    status = TableStatus.MAINTAINED if did else TableStatus.IDLE
    if application.request.dry_run:
        did, status = False, TableStatus.PLANNED if has_work else TableStatus.IDLE
    after = before
    if did and uris:
        after = {_name_of(uri): found.document() for uri in uris if (found := health_of(uri)) is not None}
    return TableResult(
        table=table.name,
        status=status,
        counts=counts,
        seconds={"all": round(time.monotonic() - started, 3)},
        health={} if before is None or after is None else {"before": before, "after": after},
        maintenance=facts or {},
    )

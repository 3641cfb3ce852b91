"""Merge one table: the bronze rows that silver has not applied, folded, in one commit."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.config.mask_secret import mask_secret
from cdc_lakehouse.config.models import Deletes, Mode
from cdc_lakehouse.config.settings import Role
from cdc_lakehouse.contract import TableResult, TableStatus
from cdc_lakehouse.errors import DeletedRowsKeptError
from cdc_lakehouse.lake.claims import Claim
from cdc_lakehouse.lake.lag import offsets_behind
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.spans import offsets_in
from cdc_lakehouse.lake.state import state_at
from cdc_lakehouse.lake.tables import columns_of, create_if_missing, life_of, schema_of
from cdc_lakehouse.silver.append import appended_changes
from cdc_lakehouse.silver.applying import apply_changes, removal_of
from cdc_lakehouse.silver.changes import Changes, changes_of
from cdc_lakehouse.silver.claiming import claim_beside, claim_of_idle
from cdc_lakehouse.silver.look import MergeTask
from cdc_lakehouse.silver.plan import next_ledger, standing_on
from cdc_lakehouse.silver.recompute import changes_nothing, without_unchanged
from cdc_lakehouse.silver.schema.change_log import added_at
from cdc_lakehouse.silver.schema.evolution import refuse_system_names
from cdc_lakehouse.silver.schema.follow import follow_bronze
from cdc_lakehouse.silver.schema.table_schema import (
    add_system_columns,
    as_wide_as,
    silver_properties,
    silver_schema,
    switch_vectors,
)
from cdc_lakehouse.silver.unchanged import refuse_changed
from cdc_lakehouse.silver.writing.merge import MergeResult
from cdc_lakehouse.silver.writing.merge_plan import DELETED
from cdc_lakehouse.silver.writing.replace_rows import MOST_CHANGES

logger = logging.getLogger(__name__)


def merge_table(application: Application, task: MergeTask) -> TableResult:
    """Carry out what a look has found. A second call with the same task is refused as superseded."""
    session = application.spark.isolated(small=task.small)
    table = task.table
    started = time.monotonic()
    appends = task.mode is Mode.APPEND
    changes = (
        appended_changes(session, application.lake, task) if appends else _folded(session, application, task)
    )
    if _may_still_get_a_key(task, changes):
        logger.info("merge waits for a row", extra={"truncates": changes.facts.truncates})
        return TableResult(table=table.name, status=TableStatus.IDLE)
    if changes.facts.events <= MOST_CHANGES:
        changes.rows.persist()
    try:
        refuse_changed(application, task)
        rows = _fitted(session, application, task, changes)
        changes = replace(changes, fills=_fills(session, application.lake, task, changes))
        rows = without_unchanged(session, application, task, changes, rows)
        read = time.monotonic()
        if changes_nothing(session, application, task, changes, rows):
            return _unchanged(application, task, changes, seconds={"read": round(read - started, 3)})
        removal = removal_of(session, application, task, changes, rows=rows)
        accepted = task.brake.refuse(removal)
        ledger, claim = _ledger(application, task, changes)
        result, ledger = apply_changes(
            session, application, task, changes, rows=rows, ledger=ledger, accepted=accepted
        )
    finally:
        changes.rows.unpersist()
    seconds = {"read": round(read - started, 3), "merge": round(time.monotonic() - read, 3)}
    logger.info("merge committed", extra={"seq": ledger.seq, "events": changes.facts.events})
    told = _told(task, changes=changes, result=result, ledger=ledger, seconds=seconds)
    return replace(told, **claim.told())


def _folded(session: SparkSession, application: Application, task: MergeTask) -> Changes:
    secret = mask_secret(application.connection(Role.STORAGE)) if task.table.columns.hashes else None
    return changes_of(session, application.lake, task, secret=secret)


def _may_still_get_a_key(task: MergeTask, changes: Changes) -> bool:
    """A table that was truncated before its first row looks like one without a key (decision 0025). That row
    tells which ones silver is to have."""
    is_open = task.table.mode is None and not changes.columns.key and task.before.seq == 0
    return is_open and changes.facts.events == changes.facts.truncates


def _fitted(session: SparkSession, application: Application, task: MergeTask, changes: Changes) -> DataFrame:
    """Silver gets the columns of the changes, and they get those that only silver has."""
    table, columns = task.table, changes.columns
    refuse_system_names(tuple(column.name for column in columns.row), table=table.name)
    uri = application.lake.silver(table.name)
    wanted = changes.rows.schema
    if task.mode is Mode.UPSERT:
        wanted = silver_schema(wanted, deletes=table.deletes)
    existing = schema_of(session, uri)
    if existing is None:
        create_if_missing(
            session, uri, schema=wanted, properties=silver_properties(vectors=table.deletion_vectors)
        )
        return changes.rows
    if DELETED in existing.names and table.deletes is Deletes.HARD:
        raise DeletedRowsKeptError(table=table.name)
    follow_bronze(
        session,
        application,
        task,
        existing=existing,
        wanted=wanted,
        columns=columns,
        dropped=changes.work.dropped,
    )
    switch_vectors(session, uri, on=table.deletion_vectors)
    add_system_columns(session, uri, existing=existing, wanted=wanted)
    return as_wide_as(existing, changes.rows)


def _fills(session: SparkSession, lake: Lake, task: MergeTask, changes: Changes) -> Mapping[str, Column]:
    """Return columns with a default that this step adds to silver, which other rows have to get, too.

    An attempt at this step may have added them and been killed. So silver's columns as of its last step are
    asked, and the log of changes: a loss of power may have torn a line of it, and a commit that states the
    ledger again has the new columns.
    """
    added = {
        name: column
        for name, column in changes.work.added.items()
        if name not in task.before.applied.filled and task.before.seq > 0
    }
    if not added:
        return {}
    name, uri = task.table.name, lake.silver(task.table.name)
    step = task.before.seq + 1
    logged = added_at(session, lake.schema_changes, table=name, silver_id=life_of(uri), step=step)
    before = None if task.silver_stated is None else state_at(uri, task.silver_stated, table=name)
    new = logged if before is None else logged | (set(columns_of(uri)) - set(before.schema.names))
    return {name: column.literal for name, column in added.items() if name in new}


def _ledger(application: Application, task: MergeTask, changes: Changes) -> tuple[Ledger, Claim]:
    seen = changes.facts.seen_through
    ledger = next_ledger(
        task.before,
        task.held,
        task.work,
        attempt=application.attempt,
        seen_through=seen.isoformat() if seen is not None else None,
        applied=replace(changes.applied, follows=task.follows),
        parked=task.holds and (task.before.parked or changes.work.parked > 0),
        refolded=changes.work.keys is not None,
    )
    after = standing_on(
        task.held,
        ledger,
        version=task.stated,
        undecodable=changes.work.undecodable,
        read_again=task.read_again,
    )
    claim = claim_beside(
        application.lake,
        after,
        bronze=task.held,
        confirmations=task.confirmations,
        counted=task.open_cases,
    )
    decisions: dict[str, object] = {} if task.interval is None else {"interval": task.interval.document()}
    if task.sweeps:
        decisions["resync"] = [sweep.plan for sweep in task.sweeps]
    return replace(after, valid_through=claim.valid, decisions=decisions), claim


def _unchanged(
    application: Application, task: MergeTask, changes: Changes, *, seconds: Mapping[str, float]
) -> TableResult:
    """Return the result of an interval whose keys are right already: nothing was written.

    Raise for a decision about a removal that does not stand.
    """
    if task.accepted is not None:
        task.accepted.refuse_unless_carried_out(task.before)
    recomputed = _recomputed(changes)
    logger.info("interval is right already", extra=recomputed)
    decisions = {} if task.interval is None else {"interval": task.interval.document()}
    lake, confirmations = application.lake, task.confirmations
    claim = claim_of_idle(lake, task.before, bronze=task.held, confirmations=confirmations)
    result = TableResult(
        table=task.table.name,
        status=TableStatus.IDLE,
        counts=recomputed,
        open_cases=task.open_cases,
        lag_offsets=offsets_behind(task.held, task.before, unread=task.unread),
        seconds=seconds,
        decisions=decisions,
        unproven_source=", ".join(task.unproven) or None,
        versions={"bronze": task.bronze_version, "silver": task.follows},
    )
    return replace(result, **claim.told())


def _recomputed(changes: Changes) -> dict[str, int]:
    keys, in_doubt = changes.work.keys, changes.work.in_doubt
    counts = {} if keys is None else {"keys_recomputed": keys.distinct().count()}
    return counts | ({"keys_in_doubt": in_doubt} if in_doubt else {})


def _repeated(task: MergeTask, changes: Changes, result: MergeResult) -> dict[str, int]:
    """Return how many events of the work silver had; of an interval it has nearly all."""
    if task.mode is not Mode.APPEND or task.recomputed is not None:
        return {}
    return {"repeated": changes.facts.events - result.inserted}


def _told(
    task: MergeTask, *, changes: Changes, result: MergeResult, ledger: Ledger, seconds: Mapping[str, float]
) -> TableResult:
    facts = changes.facts
    merged = task.advanced(
        ledger,
        seen_through=facts.seen_through,
        version=result.version,
        rows=result.inserted + result.updated + result.deleted,
        counts={
            "read": facts.read,
            "events": facts.events,
            "ignored": facts.ignored,
            "undecodable": facts.undecodable,
            "truncates": facts.truncates,
            "parked": changes.work.parked,
            "refused": changes.work.refused,
            "decoded_again": sum(each.rows for each in task.redo),
            "late_offsets": offsets_in(task.late),
            "rows_inserted": result.inserted,
            "rows_updated": result.updated,
            "rows_deleted": result.deleted,
            **_repeated(task, changes, result),
            **({"snapshots_overtaken": 1} if changes.overtaken else {}),
            **({} if task.interval is None else _recomputed(changes)),
            **({} if changes.outside is None else {"rows_outside": changes.outside}),
            **({"columns_dropped": len(changes.work.dropped.new)} if changes.work.dropped.new else {}),
        },
        seconds=seconds,
    )
    return replace(merged, errors_by_code=facts.errors_by_code)

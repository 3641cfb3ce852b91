"""Merge a table that has little news without a Spark job: read, fold and write Arrow columns, then commit.

Most merges of most tables are like this: new events of known columns, each newer than the row that silver
has. Whatever asks for more is left to the general merge: what came late, was decoded again or could not be,
what is about all rows at once, and settings that change columns, keys or rows.

One record, from bronze to silver: an update of key 7 is among the work (`bronze_rows`). It can be applied
like any other (`event_facts`). Silver has key 7 in row 12 of a file (`stored_rows`), at an older place. The
fold says what the row is now. It is written to a new file, row 12 gets into the deletion vector of the old
one (`file_changes`), and both are in the commit that states the new ledger.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.config.models import Deletes, Mode
from cdc_lakehouse.contract import TableResult, TableStatus
from cdc_lakehouse.debezium.columns import Column, TableColumns
from cdc_lakehouse.errors import SupersededError
from cdc_lakehouse.fold.folded_keys import FoldedKeys, fold
from cdc_lakehouse.fold.inputs import Clearings, Events, StoredRows, Tombstones
from cdc_lakehouse.fold.key_groups import number_keys
from cdc_lakehouse.fold.timeline import arrange
from cdc_lakehouse.lake.delta_transaction import DataFile, DeltaTransaction
from cdc_lakehouse.lake.lag import offsets_behind
from cdc_lakehouse.lake.ledger import APPLICATION_ID, Ledger, by_topic
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.rows import nullable_schema
from cdc_lakehouse.lake.snapshot import Snapshot, newest_snapshot, snapshot_at
from cdc_lakehouse.lake.steps import Cause, commit_step_files, standing_of
from cdc_lakehouse.lake.tables import life_of, properties_of
from cdc_lakehouse.lake.transaction import commit
from cdc_lakehouse.silver.claiming import claim_beside
from cdc_lakehouse.silver.columnar.bronze_rows import read_work
from cdc_lakehouse.silver.columnar.event_facts import examine_plain_rows
from cdc_lakehouse.silver.columnar.file_changes import delete_rows, write_rows
from cdc_lakehouse.silver.columnar.stored_rows import FoundRows, find_rows
from cdc_lakehouse.silver.examine import WorkFacts
from cdc_lakehouse.silver.late.refused import may_have_gone_back
from cdc_lakehouse.silver.look import MergeTask
from cdc_lakehouse.silver.made_by import settings_of
from cdc_lakehouse.silver.own_key.topic_key import may_share_keys
from cdc_lakehouse.silver.plan import next_ledger, rows_committed, standing_on
from cdc_lakehouse.silver.schema.dropped import DroppedColumns, Unsent, unsent_of
from cdc_lakehouse.silver.unchanged import refuse_changed

logger = logging.getLogger(__name__)

MOST_OFFSETS = 200_000
"""News of a table above this is work for Spark, which spreads it over its tasks."""
_VECTORS = "delta.enableDeletionVectors"
_TOLD_BY_MERGE = ("delta.enableChangeDataFeed", "delta.enableRowTracking")
_PLACE = ("_cdc_position", "_cdc_tx_id")
_SYSTEM = ("_cdc_op", *_PLACE, "_cdc_commit_ts", "_cdc_incomplete")
_DELETED = "_cdc_deleted"
_TOMBSTONE = (*_PLACE, "_cdc_commit_ts")


def merge_small(application: Application, task: MergeTask) -> TableResult | None:
    """Carry out what a look has found; None, with nothing written, where the general merge has to.

    A second call with the same task is refused as superseded.
    """
    started = time.monotonic()
    news = _read_news(application.lake, task)
    if news is None:
        return None
    changes = _fold_news(application.lake, task, news)
    if changes is None:
        return None
    refuse_changed(application, task)
    ledger, claim = _plan_ledger(application, task, news)
    read = time.monotonic()
    if not _write(application, task, changes, ledger):
        return None
    seconds = {"read": round(read - started, 3), "merge": round(time.monotonic() - read, 3)}
    logger.info("merge committed", extra={"seq": ledger.seq, "events": news.facts.events})
    result = _to_result(task, news.facts, changes, ledger, seconds=seconds)
    return replace(result, **claim)


@dataclass(frozen=True, slots=True)
class _News:
    rows: pa.Table
    """Rows of bronze that silver has not applied."""
    columns: TableColumns
    facts: WorkFacts
    unsent: Unsent


@dataclass(frozen=True, slots=True)
class _Changes:
    silver: Snapshot
    found: Sequence[FoundRows]
    """Rows that the changes replace or delete."""
    rows: pa.Table
    """New rows of silver."""
    tombstones: pa.Table
    """Keys that events deleted, and where."""
    inserted: int
    updated: int
    deleted: int


def _read_news(lake: Lake, task: MergeTask) -> _News | None:
    if not _is_plain_task(task):
        return None
    bronze = snapshot_at(lake.bronze(task.table.name), task.bronze_version)
    if bronze is None or not {"key", "after"} <= set(bronze.schema.names):
        return None
    columns = _columns_of(bronze)
    rows = read_work(bronze, task.work, held=task.held)
    facts = examine_plain_rows(rows)
    if facts is None or rows_committed(task.held, task.before) not in (None, facts.read):
        return None
    if may_have_gone_back(facts, before=task.before.applied, held=task.held, work=task.work):
        return None
    unsent = unsent_of(
        task.table,
        lake.archives,
        columns,
        held=task.held,
        before=task.before.applied,
        newest=facts.newest_writers,
        highest=facts.highest,
    )
    has_one_shape = not any(unsent.by_writer.values()) and unsent.columns == DroppedColumns()
    return _News(rows, columns, facts, unsent) if has_one_shape else None


def _is_plain_task(task: MergeTask) -> bool:
    """Return whether only new events of known columns and keys are to be applied."""
    table, before = task.table, task.before
    is_other_work = (
        task.mode is not Mode.UPSERT,
        task.silver_stated is None or before.seq == 0,
        task.late or task.read_again or task.redo or task.buries_again,
        task.holds or task.releases or before.parked,
        task.interval is not None or task.sweeps or task.accepted is not None,
        before.applied.unfilled or before.applied.complete is not None or before.applied.dropped,
    )
    has_other_rows = (
        table.history is not None,
        table.filter is not None or table.key is not None or table.topic_column is not None,
        not table.columns.is_all or before.applied.made_by != settings_of(table, None),
        not table.deletion_vectors,
        may_share_keys(table, task.held),
    )
    offsets = sum(until - start for spans in task.work.values() for start, until in spans.values())
    return not any(is_other_work) and not any(has_other_rows) and offsets <= MOST_OFFSETS


def _columns_of(bronze: Snapshot) -> TableColumns:
    schema = nullable_schema(bronze)
    key, row = (
        tuple(Column(field.name, field.type) for field in schema.field(name).type)
        for name in ("key", "after")
    )
    return TableColumns(key=key, row=row)


def _fold_news(lake: Lake, task: MergeTask, news: _News) -> _Changes | None:
    silver = newest_snapshot(lake.silver(task.table.name))
    if silver is None or not _fits(silver, news.columns, deletes=task.table.deletes):
        return None
    events = Events.from_bronze(news.rows).with_one_commit()
    names = [column.name for column in news.columns.key]
    wanted = _distinct_keys(events.key)
    columns = [field.name for field in silver.schema] if _needs_values(task, events) else [*names, *_SYSTEM]
    found = find_rows(silver, wanted, columns)
    schema = nullable_schema(silver)
    stored = pa.concat_tables(
        [pa.schema([schema.field(name) for name in columns]).empty_table(), *(each.values for each in found)]
    )
    if len(np.unique(_join([each.keys for each in found]))) < len(stored):
        return None  # two rows of one key: not the work of a merge
    tombstones = _find_tombstones(lake, task, news, wanted)
    if tombstones is None:
        return None
    applied = task.before.applied
    clearings = Clearings(
        [] if applied.cleared is None else [applied.cleared], applied.swept, applied.gone_before
    )
    timeline, is_stale = arrange(events, StoredRows.from_silver(stored, names), tombstones, clearings)
    if is_stale.any():
        return None
    folded = fold(timeline)
    if folded.images.is_open.any() or folded.is_cleared.any():
        return None
    return _to_changes(task, news, folded, silver=silver, found=found)


def _fits(silver: Snapshot, columns: TableColumns, *, deletes: Deletes) -> bool:
    """Return whether silver has exactly the columns of bronze, in their types, and those of the project."""
    own = {field.name: field.type for field in nullable_schema(silver)}
    system = {*_SYSTEM, *([_DELETED] if deletes is Deletes.SOFT else [])}
    wanted = {column.name: column.type for column in columns.row}
    is_same = {name: type_ for name, type_ in own.items() if name not in system} == wanted
    properties = properties_of(silver.uri)
    is_told = any(properties.get(name) == "true" for name in _TOLD_BY_MERGE)
    return is_same and system <= own.keys() and properties.get(_VECTORS) == "true" and not is_told


def _distinct_keys(keys: pa.StructArray) -> pa.StructArray:
    (numbers,), _ = number_keys(keys)
    _, first = np.unique(numbers, return_index=True)
    return keys.take(pa.array(first))


def _needs_values(task: MergeTask, events: Events) -> bool:
    """Return whether a new row may have values of the old one."""
    is_partial = any(mask.any() for mask in events.lacks.values())
    return is_partial or task.table.deletes is Deletes.SOFT


def _find_tombstones(lake: Lake, task: MergeTask, news: _News, wanted: pa.StructArray) -> Tombstones | None:
    """Return the tombstones of the keys, none where no event can be older than one; None if unreadable."""
    names = [field.name for field in wanted.type]
    fields = [(field.name, field.type) for field in wanted.type]
    schema = pa.schema([*fields, *((name, _TYPES[name]) for name in _PLACE)])
    if not news.facts.may_be_old(task.before.applied):
        return Tombstones.from_table(schema.empty_table(), names)
    snapshot = newest_snapshot(lake.tombstones(task.table.name))
    if snapshot is None:
        return Tombstones.from_table(schema.empty_table(), names)
    types = {field.name: field.type for field in nullable_schema(snapshot)}
    if any(types.get(name) != type_ for name, type_ in fields):
        return None
    found = [each.values for each in find_rows(snapshot, wanted, schema.names)]
    return Tombstones.from_table(pa.concat_tables([schema.empty_table(), *found]), names)


_TYPES = {
    "_cdc_position": pa.struct(
        [
            (name, pa.int64())
            for name in ("epoch", "phase", "commit", "streamed", "row", "order_in_tx", "kind")
        ]
    ),
    "_cdc_tx_id": pa.int64(),
}


def _to_changes(
    task: MergeTask, news: _News, folded: FoldedKeys, *, silver: Snapshot, found: Sequence[FoundRows]
) -> _Changes | None:
    is_soft = task.table.deletes is Deletes.SOFT
    rows = folded.to_rows(news.columns, with_deleted=is_soft)
    had_row = np.isin(folded.timeline.key[folded.last], folded.timeline.key[folded.timeline.is_stored])
    gone = rows.filter(pa.array(folded.is_deleted))
    is_written = np.ones(len(rows), bool) if is_soft else ~folded.is_deleted
    deleted = int((had_row & folded.is_deleted).sum())
    if deleted > task.brake.limit.rows:
        return None  # a person may have to agree
    names = [column.name for column in news.columns.key]
    return _Changes(
        silver,
        found,
        rows=_in_schema(rows.filter(pa.array(is_written)), nullable_schema(silver)),
        tombstones=gone.select([*names, *_TOMBSTONE]).slice(0, 0 if is_soft else None),
        inserted=int((~had_row & is_written).sum()),
        updated=int((had_row & is_written).sum()),
        deleted=0 if is_soft else deleted,
    )


def _in_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    return pa.table({field.name: rows[field.name].cast(field.type) for field in schema}, schema=schema)


def _join(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _plan_ledger(application: Application, task: MergeTask, news: _News) -> tuple[Ledger, Mapping[str, Any]]:
    """Return silver's next ledger, and the fields of the result that say up to when it is complete."""
    before, seen = task.before.applied, news.facts.seen_through
    reached = max((each for each in (before.reached, news.facts.highest) if each is not None), default=None)
    applied = replace(before, reached=reached, follows=task.follows, writers=news.unsent.writers, filled=())
    ledger = next_ledger(
        task.before,
        task.held,
        task.work,
        attempt=application.attempt,
        seen_through=None if seen is None else seen.isoformat(),
        applied=applied,
    )
    after = standing_on(task.held, ledger, version=task.stated, undecodable={}, read_again={})
    claim = claim_beside(
        application.lake,
        after,
        bronze=task.held,
        confirmations=task.confirmations,
        counted=task.open_cases,
    )
    return replace(after, valid_through=claim.valid, decisions={}), claim.told()


def _write(application: Application, task: MergeTask, changes: _Changes, ledger: Ledger) -> bool:
    """Commit the tombstones, then silver with its ledger; False where the general merge has to do both.

    The tombstones say the same when they are written again, so a merge that was killed between is repeated.
    """
    lake, uri = application.lake, changes.silver.uri
    session = application.spark.isolated(small=True)
    if len(changes.tombstones) and not _bury(application, task, changes, ledger):
        return False
    keys = [field.name for field in changes.tombstones.schema if field.name not in _TOMBSTONE]
    files = write_rows(uri, changes.rows, keys=keys, attempt=application.attempt)
    actions = delete_rows(uri, changes.found)

    def state_ledger() -> None:
        transaction = DeltaTransaction.start(session, uri)
        step = transaction.versions_of([APPLICATION_ID])[APPLICATION_ID] or 0
        if step != ledger.seq - 1 or transaction.read_version != changes.silver.version:
            raise SupersededError(table=ledger.table, seq=ledger.seq - 1, attempt=ledger.attempt)
        transaction.commit(
            files, {APPLICATION_ID: ledger.seq}, metadata=ledger.to_json(), step=ledger.seq, more=actions
        )

    commit(state_ledger, uri=uri, ledger=ledger)
    logger.debug("files of a merge", extra={"added": len(files), "vectors": len(actions), "lake": lake.root})
    return True


def _bury(application: Application, task: MergeTask, changes: _Changes, ledger: Ledger) -> bool:
    """Keep where keys were deleted; False where the table of tombstones has other columns."""
    uri = application.lake.tombstones(task.table.name)
    snapshot = newest_snapshot(uri)
    if snapshot is None or {f.name: f.type for f in nullable_schema(snapshot)} != {
        field.name: field.type for field in changes.tombstones.schema
    }:
        return False
    cause = Cause(
        task.table.name,
        ledger.seq,
        behind=task.before.attempt,
        attempt=application.attempt,
        life=life_of(changes.silver.uri),
        made_by=ledger.applied.made_by,
    )
    read = standing_of(uri)
    if read.life != cause.life:
        return False
    keys = [name for name in changes.tombstones.column_names if name not in _TOMBSTONE]
    rows = _in_schema(changes.tombstones, nullable_schema(snapshot))
    files: list[DataFile] = write_rows(uri, rows, keys=keys, attempt=application.attempt)
    commit_step_files(application.spark.isolated(small=True), uri, files, read=read, cause=cause)
    return True


def _to_result(
    task: MergeTask, facts: WorkFacts, changes: _Changes, ledger: Ledger, *, seconds: Mapping[str, float]
) -> TableResult:
    seen = facts.seen_through
    return TableResult(
        table=task.table.name,
        status=TableStatus.ADVANCED,
        ranges=by_topic(ledger.added),
        rows=changes.inserted + changes.updated + changes.deleted,
        counts={
            "read": facts.read,
            "events": facts.events,
            "ignored": facts.ignored,
            "undecodable": 0,
            "truncates": 0,
            "parked": 0,
            "refused": 0,
            "decoded_again": 0,
            "late_offsets": 0,
            "rows_inserted": changes.inserted,
            "rows_updated": changes.updated,
            "rows_deleted": changes.deleted,
        },
        open_cases=task.open_cases,
        seen_through=ledger.seen_through,
        lag_seconds=None if seen is None else round((datetime.now(UTC) - seen).total_seconds(), 1),
        lag_offsets=offsets_behind(task.held, ledger, unread=task.unread),
        seconds=seconds,
        decisions=ledger.decisions,
        unproven_source=", ".join(task.unproven) or None,
        versions={"bronze": task.bronze_version, "silver": changes.silver.version + 1},
    )

"""Fold the news of a table to what changes in silver, in its history and in its tombstones."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.config.models import Deletes
from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.debezium.operations import Operation
from cdc_lakehouse.fold.folded_keys import FoldedKeys, fold
from cdc_lakehouse.fold.inputs import Clearings, Events, StoredRows, StoredVersions, Tombstones
from cdc_lakehouse.fold.key_groups import number_keys
from cdc_lakehouse.fold.places import FIELDS
from cdc_lakehouse.fold.row_versions import VersionRules, cut_versions
from cdc_lakehouse.fold.timeline import Timeline, arrange
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.row_replacement import can_replace_rows
from cdc_lakehouse.lake.rows import nullable_schema
from cdc_lakehouse.lake.snapshot import Snapshot, newest_snapshot, snapshot_at
from cdc_lakehouse.lake.state import is_there
from cdc_lakehouse.lake.steps import Standing, standing_of
from cdc_lakehouse.lake.tables import life_of, properties_of
from cdc_lakehouse.silver.columnar.news import GeneralMergeNeededError, News
from cdc_lakehouse.silver.columnar.stored_rows import FoundRows, find_rows
from cdc_lakehouse.silver.history.upkeep import RULES
from cdc_lakehouse.silver.look import MergeTask
from cdc_lakehouse.silver.writing.merge_plan import DELETED

VERSION_COLUMNS = (
    *("_cdc_op", "_cdc_from", "_cdc_to", "_cdc_from_ts", "_cdc_to_ts"),
    *("_cdc_tx_id", "_cdc_to_tx_id", "_cdc_incomplete"),
)
_POSITION = pa.struct([(name, pa.int64()) for name in FIELDS])
_PLACE = {"_cdc_position": _POSITION, "_cdc_tx_id": pa.int64()}
_TOMBSTONE = (*_PLACE, "_cdc_commit_ts")
_SYSTEM = ("_cdc_op", *_TOMBSTONE, "_cdc_incomplete")


@dataclass(frozen=True, slots=True)
class HistoryChanges:
    read: Standing
    """State of the history that was read."""
    keys: Sequence[str]
    found: Sequence[FoundRows]
    """Open versions that `rows` replace."""
    rows: pa.Table
    """Versions of the keys with news."""


@dataclass(frozen=True, slots=True)
class RowChanges:
    """What changes in the tables of one merge."""

    silver: Snapshot
    keys: Sequence[str]
    found: Sequence[FoundRows]
    """Rows of silver that go, or that `rows` replace."""
    rows: pa.Table
    """New rows of silver."""
    tombstones: pa.Table
    """Keys that events deleted, and where."""
    history: HistoryChanges | None
    inserted: int
    updated: int
    deleted: int


def fold_news(lake: Lake, task: MergeTask, news: News) -> RowChanges:
    """Return what the news change. Raise `GeneralMergeNeededError`; nothing is written here."""
    silver = newest_snapshot(lake.silver(task.table.name))
    if silver is None:
        raise GeneralMergeNeededError("silver is not there")
    _refuse_other_columns(silver, news.columns, deletes=task.table.deletes)
    events = Events.from_bronze(news.rows).with_one_commit()
    keys = [column.name for column in news.columns.key]
    wanted = _distinct_keys(events.key)
    names = silver.schema.names if _needs_values(task, events) else [*keys, *_SYSTEM]
    found = find_rows(silver, wanted, names)
    stored = _join_values(silver, found, names)
    if len(np.unique(np.concatenate([np.zeros(0, np.int64), *(each.keys for each in found)]))) < len(stored):
        raise GeneralMergeNeededError("two rows of one key")
    applied = task.before.applied
    cleared = [] if applied.cleared is None else [applied.cleared]
    timeline, is_stale = arrange(
        events,
        StoredRows.from_silver(stored, keys),
        _find_tombstones(lake, task, news, wanted),
        Clearings(cleared, applied.swept, applied.gone_before),
    )
    folded = fold(timeline)
    if is_stale.any() or folded.is_cleared.any():
        raise GeneralMergeNeededError("events that are not newer than what silver has")
    if folded.images.is_open.any():
        raise GeneralMergeNeededError("values of a row that had another key")
    history = None if task.table.history is None else _cut_history(lake, task, news, timeline, silver=silver)
    return _to_changes(task, news, folded, silver=silver, found=found, history=history)


def in_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the rows with exactly these columns, in their types."""
    return pa.table({field.name: rows[field.name].cast(field.type) for field in schema}, schema=schema)


def _refuse_other_columns(silver: Snapshot, columns: TableColumns, *, deletes: Deletes) -> None:
    """Raise unless silver has exactly the columns of bronze, in their types, and those of the project."""
    system = {*_SYSTEM, *([DELETED] if deletes is Deletes.SOFT else [])}
    if not _has_columns(silver, columns, system=system):
        raise GeneralMergeNeededError("columns that silver does not have, or not in their types")
    if not can_replace_rows(properties_of(silver.uri)):
        raise GeneralMergeNeededError("properties of silver")


def _has_columns(snapshot: Snapshot, columns: TableColumns, *, system: Collection[str]) -> bool:
    existing = {field.name: field.type for field in nullable_schema(snapshot)}
    own = {name: type_ for name, type_ in existing.items() if name not in system}
    return own == {column.name: column.type for column in columns.row} and {*system} <= existing.keys()


def _distinct_keys(keys: pa.StructArray) -> pa.StructArray:
    (numbers,), _ = number_keys(keys)
    _, first = np.unique(numbers, return_index=True)
    return keys.take(pa.array(first))


def _needs_values(task: MergeTask, events: Events) -> bool:
    """Return whether new rows or versions may have values of the old ones."""
    keeps_old_values = task.table.deletes is Deletes.SOFT or task.table.history is not None
    return keeps_old_values or any(mask.any() for mask in events.lacks.values())


def _join_values(snapshot: Snapshot, found: Sequence[FoundRows], names: Sequence[str]) -> pa.Table:
    schema = nullable_schema(snapshot)
    empty = pa.schema([schema.field(name) for name in names]).empty_table()
    return pa.concat_tables([empty, *(each.values for each in found)])


def _find_tombstones(lake: Lake, task: MergeTask, news: News, wanted: pa.StructArray) -> Tombstones:
    """Return the tombstones of the keys; none where no event can be older than one."""
    keys = [field.name for field in wanted.type]
    schema = pa.schema([*((field.name, field.type) for field in wanted.type), *_PLACE.items()])
    snapshot = None
    if news.facts.may_be_old(task.before.applied):
        snapshot = newest_snapshot(lake.tombstones(task.table.name))
    if snapshot is None:
        return Tombstones.from_table(schema.empty_table(), keys)
    if any(nullable_schema(snapshot).field(name).type != schema.field(name).type for name in keys):
        raise GeneralMergeNeededError("tombstones with keys of other types")
    return Tombstones.from_table(
        _join_values(snapshot, find_rows(snapshot, wanted, schema.names), schema.names), keys
    )


def _cut_history(
    lake: Lake, task: MergeTask, news: News, timeline: Timeline, *, silver: Snapshot
) -> HistoryChanges:
    """Return what changes in the history of a table that keeps one."""
    uri, option = lake.history(task.table.name), task.table.history
    if option is None or not is_there(uri):
        raise GeneralMergeNeededError("a history that is not there yet")
    read = standing_of(uri)
    snapshot = snapshot_at(uri, read.version)
    is_level = (read.silver, read.attempt) == (task.before.seq, task.before.attempt)
    if snapshot is None or not is_level or read.life != life_of(silver.uri) or read.rules != RULES:
        raise GeneralMergeNeededError("a history that is not level with silver")
    has_columns = _has_columns(snapshot, news.columns, system=VERSION_COLUMNS)
    if not has_columns or not can_replace_rows(properties_of(uri)):
        raise GeneralMergeNeededError("other columns or properties of the history")
    keys = [column.name for column in news.columns.key]
    names = [*keys, *VERSION_COLUMNS]
    found = find_rows(snapshot, timeline.take_keys(timeline.firsts), names)
    stored = _join_values(snapshot, found, names)
    is_create = pc.equal(stored["_cdc_op"], Operation.CREATE.value)
    if pc.any(pc.and_(stored["_cdc_incomplete"].is_valid(), is_create)).as_py():
        raise GeneralMergeNeededError("versions that miss values of a row that had another key")
    versions = StoredVersions.from_history(stored, keys)
    cut = cut_versions(timeline, (), versions, VersionRules(news.columns, option.columns))
    if len(cut.open_keys):
        raise GeneralMergeNeededError("values of a row that had another key")
    open_versions = [each.take(each.values["_cdc_to"].is_null().to_numpy()) for each in found]
    return HistoryChanges(
        read,
        keys,
        [each for each in open_versions if len(each.rows)],
        in_schema(cut.rows, nullable_schema(snapshot)),
    )


def _to_changes(
    task: MergeTask,
    news: News,
    folded: FoldedKeys,
    *,
    silver: Snapshot,
    found: Sequence[FoundRows],
    history: HistoryChanges | None,
) -> RowChanges:
    is_soft, timeline = task.table.deletes is Deletes.SOFT, folded.timeline
    rows = folded.to_rows(news.columns, with_deleted=is_soft)
    had_row = np.isin(timeline.key[folded.last], timeline.key[timeline.is_stored])
    is_written = np.ones(len(rows), bool) if is_soft else ~folded.is_deleted
    deleted = int((had_row & folded.is_deleted).sum())
    if deleted > task.brake.limit.rows:
        raise GeneralMergeNeededError("many deletes, which a person may have to accept")
    keys = [column.name for column in news.columns.key]
    tombstones = rows.filter(pa.array(folded.is_deleted)).select([*keys, *_TOMBSTONE])
    return RowChanges(
        silver,
        keys,
        found,
        rows=in_schema(rows.filter(pa.array(is_written)), nullable_schema(silver)),
        tombstones=tombstones.slice(0, 0) if is_soft else tombstones,
        history=history,
        inserted=int((~had_row & is_written).sum()),
        updated=int((had_row & is_written).sum()),
        deleted=0 if is_soft else deleted,
    )

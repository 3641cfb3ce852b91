"""The steps of every key in the order of the source: its stored row, then the events that are newer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cdc_lakehouse.fold.arrays import Bools, Int64s
from cdc_lakehouse.fold.inputs import Clearings, Events, StoredRows, Tombstones
from cdc_lakehouse.fold.key_groups import number_keys
from cdc_lakehouse.fold.places import FIELDS, Places
from cdc_lakehouse.lake.place import Place

NONE = -1
"""Stands for a step where there is none."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """All arrays have one item per step; the steps of a key stand side by side.

    A key has one life or more: a life begins with the first step, after a delete, after a clearing, and with
    an event by which the row came from another key. A value that an event lacks is that of an earlier step of
    the same life, or unknown.
    """

    events: Events
    stored: StoredRows
    key: Int64s
    """Number of the step's key, ascending."""
    row: Int64s
    """Number of the row with the step's values: stored rows are numbered first, then events."""
    places: Places
    is_stored: Bools
    is_image: Bools
    """Steps that have an image of the row."""
    ends_life: Bools
    """Deletes, and stored rows that are marked as deleted."""
    comes_from_other_key: Bools
    lacks: Mapping[str, Bools]
    begins_life: Bools
    clearings_after: Int64s
    """How many clearings of the table come after the step."""
    swept: Place | None

    @property
    def firsts(self) -> Int64s:
        """Return the first step of each key."""
        return np.flatnonzero(_differs_from_one_before(self.key))

    @property
    def lasts(self) -> Int64s:
        """Return the last step of each key."""
        firsts = self.firsts
        return np.append(firsts[1:], len(self.key))[: len(firsts)] - 1

    def take_values(self, name: str, type_: pa.DataType, steps: Int64s) -> pa.Array:
        """Return a column of the row at these steps, NULL for `NONE`.

        A merge that does not need the stored values has not read them.
        """
        stored = self.stored.values
        known = stored[name].combine_chunks() if name in stored.column_names else pa.nulls(len(stored))
        return self._take(known.cast(type_), self.events.after.field(name), steps)

    def take_key(self, name: str, steps: Int64s) -> pa.Array:
        return self._take(self.stored.key.field(name), self.events.key.field(name), steps)

    def take_keys(self, steps: Int64s) -> pa.StructArray:
        names = [field.name for field in self.events.key.type]
        return pa.StructArray.from_arrays([self.take_key(name, steps) for name in names], names=names)

    def take_operations(self, steps: Int64s) -> pa.Array:
        return self._take(self.stored.values["_cdc_op"].combine_chunks(), self.events.op, steps)

    def take_times(self, steps: Int64s) -> pa.Array:
        """Return the commit times of these steps."""
        stored = self.stored.values["_cdc_commit_ts"].combine_chunks()
        return self._take(stored, self.events.commit_times, steps)

    def _take(self, of_stored: pa.Array, of_events: pa.Array, steps: Int64s) -> pa.Array:
        there = steps != NONE
        rows = pa.array(np.where(there, self.row[steps], 0), mask=~there)
        taken = pa.chunked_array([of_stored.cast(of_events.type), of_events]).take(rows)
        return taken.chunk(0) if taken.num_chunks == 1 else taken.combine_chunks()

    def is_cleared(self, steps: Int64s) -> Bools:
        """Return which steps stand before the newest clearing."""
        return self.clearings_after[steps] > 0

    def is_swept(self, steps: Int64s) -> Bools:
        return is_before(self.swept, self.places.take(steps))


def is_before(clearing: Place | None, places: Places) -> Bools:
    """Return which places the clearing is after."""
    if clearing is None:
        return np.zeros(len(places), bool)
    return Places.of_one(clearing).is_after(places)


def arrange(
    events: Events, stored: StoredRows, tombstones: Tombstones, clearings: Clearings
) -> tuple[Timeline, Bools]:
    """Return the steps of all keys, sorted, and which events are stale.

    A stale event is not newer than the stored row of its key, or older than its tombstone, or than the newest
    clearing that silver has applied. It is no step.
    """
    kinds = events.key.type
    parts = (_cast_key(stored.key, kinds), _cast_key(tombstones.key, kinds), events.key)
    (stored_key, tombstone_key, event_key), count = number_keys(*parts)
    oldest_first = np.lexsort(tombstones.places.fields[::-1])
    is_stale = ~_is_newer(
        events, stored.places, _index_by_key(stored_key, np.arange(len(stored)), count)[event_key]
    )
    is_stale |= _is_before_tombstone(
        events, tombstones, _index_by_key(tombstone_key[oldest_first], oldest_first, count)[event_key]
    )
    is_stale |= is_before(clearings.applied, events.places)
    kept = np.flatnonzero(~is_stale)
    places = stored.places.followed_by(events.places.take(kept))
    is_stored = np.arange(len(places)) < len(stored)
    keys = np.concatenate([stored_key, event_key[kept]])
    order = _sort_steps(keys, is_stored, places)
    order = order[~_is_repeated(keys[order], places.take(order))]
    timeline = _make_timeline(
        events,
        stored,
        clearings,
        key=keys[order],
        row=np.concatenate([np.arange(len(stored)), len(stored) + kept])[order],
        places=places.take(order),
        is_stored=is_stored[order],
    )
    return timeline, is_stale


def _cast_key(key: pa.StructArray, type_: pa.StructType) -> pa.StructArray:
    """Return the key in the types of an event's key: bronze has a widened key before other tables do."""
    columns = [key.field(field.name).cast(field.type) for field in type_]
    return pa.StructArray.from_arrays(columns, names=[field.name for field in type_])


def _index_by_key(keys: Int64s, rows: Int64s, count: int) -> Int64s:
    """Return for each of `count` keys its row, the last one of several, or `NONE`."""
    index = np.full(count, NONE, np.int64)
    index[keys] = rows
    return index


def _is_newer(events: Events, places: Places, rows: Int64s) -> Bools:
    """Return which events are newer than the place in their row; an event without one is."""
    is_newer = np.ones(len(events), bool)
    compared = np.flatnonzero(rows != NONE)
    is_newer[compared] = events.places.take(compared).is_after(places.take(rows[compared]))
    return is_newer


def _is_before_tombstone(events: Events, tombstones: Tombstones, rows: Int64s) -> Bools:
    """Return which events are older than the tombstone of their key.

    The very delete of a tombstone is not: a merge can be killed between the tombstones and silver.
    """
    is_buried = np.zeros(len(events), bool)
    compared = np.flatnonzero(rows != NONE)
    is_buried[compared] = tombstones.places.take(rows[compared]).is_after(events.places.take(compared))
    return is_buried


def _sort_steps(keys: Int64s, is_stored: Bools, places: Places) -> Int64s:
    """Return the order of the steps: by key, the stored row first, then by position.

    Kafka keeps the order of a key's events, so a stable sort by key is mostly all there is to do.
    """
    order = np.argsort(keys, kind="stable")
    if _is_in_order(keys[order], is_stored[order], places.take(order)):
        return order
    return np.lexsort((*places.fields[::-1], ~is_stored, keys))


def _is_in_order(keys: Int64s, is_stored: Bools, places: Places) -> bool:
    """Return whether the steps of each key are in the order of their positions. Their numbers are."""
    decided = (keys[1:] != keys[:-1]) | is_stored[:-1]
    if is_stored[1:][keys[1:] == keys[:-1]].any():
        return False
    for number in range(len(FIELDS)):
        before, after = places.fields[number, :-1], places.fields[number, 1:]
        if (~decided & (before > after)).any():
            return False
        decided = decided | (before < after)
    return True


def _is_repeated(keys: Int64s, places: Places) -> Bools:
    """Return which steps stand at the place of the next one of their key: one event, sent several times."""
    is_repeated = np.zeros(len(keys), bool)
    is_repeated[:-1] = keys[:-1] == keys[1:]
    for line in places.fields:
        is_repeated[:-1] &= line[:-1] == line[1:]
    return is_repeated


def _make_timeline(
    events: Events,
    stored: StoredRows,
    clearings: Clearings,
    *,
    key: Int64s,
    row: Int64s,
    places: Places,
    is_stored: Bools,
) -> Timeline:
    is_delete, is_create = events.is_delete, events.is_create
    whole = np.zeros(len(stored), bool)
    lacks = {
        name: np.concatenate(
            [stored.lacks.get(name, whole), events.lacks.get(name, np.zeros(len(events), bool))]
        )[row]
        for name in sorted({*stored.lacks, *events.lacks})
    }
    lacks_any = np.zeros(len(events), bool)
    for mask in events.lacks.values():
        lacks_any = lacks_any | mask
    is_image = np.concatenate([~whole, ~is_delete])[row]
    ends_life = np.concatenate([stored.is_deleted, is_delete])[row]
    comes_from_other_key = np.concatenate([whole, is_create & lacks_any])[row]
    begins_life = _differs_from_one_before(key) | comes_from_other_key
    begins_life[1:] |= ends_life[:-1]
    clearings_after = np.zeros(len(key), np.int64)
    for clearing in clearings.cleared:
        clearings_after += is_before(clearing, places)
    begins_life[1:] |= _differs_from_one_before(clearings_after)[1:]
    return Timeline(
        events=events,
        stored=stored,
        key=key,
        row=row,
        places=places,
        is_stored=is_stored,
        is_image=is_image,
        ends_life=ends_life,
        comes_from_other_key=comes_from_other_key,
        lacks=lacks,
        begins_life=begins_life,
        clearings_after=clearings_after,
        swept=clearings.swept,
    )


def _differs_from_one_before(numbers: Int64s) -> Bools:
    differs = np.ones(len(numbers), bool)
    differs[1:] = numbers[1:] != numbers[:-1]
    return differs

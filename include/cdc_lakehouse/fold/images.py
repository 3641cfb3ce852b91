"""Images of rows, and for each column that an image lacks the earlier step that supplies its value.

Every question has the form "which is the last step, up to this one, that …", and one running maximum over all
steps answers it for all keys at once. An example with one key: silver has the row (note=a, big=B) of place
10, and a batch brings four events. `big` is a large value (TOAST), which PostgreSQL leaves out of an update
that does not change it.

    step                        0          1        2        3          4
    place                      10         20       30       40         50
    op                     stored     update   delete   create     update
    note                        a          b        -        d          e
    big                         B    (lacks)        -        D    (lacks)

    last step with an image     0          1        1        3          4
    last start of a life        0          0        0        3          3
    last step that has big      0          0        0        3          3

The newest image is step 4. It has `note` itself. The last step that has `big` is step 3, and the life of
step 4 began no later than that (step 3), so the value is D. Without step 3 the life would begin with step 4,
the first one after the delete. Step 0 would be too old then, and `big` would be NULL and listed as
incomplete.

A row can come from another key (`cdc-semantics` §3). The source sends a changed key as the delete of the old
key and the create of the new one, and the create lacks the large values that the update did not change. They
are those that the old key had just before that delete, whose row may itself have come from a third key.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.fold.arrays import Bools, Int64s
from cdc_lakehouse.fold.timeline import NONE, Timeline


@dataclass(frozen=True, slots=True)
class Images:
    """Image steps of a timeline, or `NONE`, and the steps that supply their values."""

    timeline: Timeline
    steps: Int64s
    value_steps: Mapping[str, Int64s]
    """Column that some step lacks -> for each image the step with its value, `NONE` for an unknown one."""
    is_open: Bools
    """Images of rows that came from another key whose delete is not on the timeline."""

    def take_rows(self, columns: TableColumns, key_steps: Int64s) -> dict[str, pa.Array]:
        """Return the columns of the rows. Rows without an image have the key of their `key_steps` alone."""
        key_names = {column.name for column in columns.key}
        rows = {}
        for column in columns.row:
            if column.name in key_names:
                rows[column.name] = self.timeline.take_key(column.name, key_steps).cast(column.type)
            else:
                steps = self.value_steps.get(column.name, self.steps)
                rows[column.name] = self.timeline.take_values(column.name, column.type, steps)
        return rows

    def list_incomplete(self, columns: TableColumns, *, dropped: Collection[str]) -> pa.Array:
        """Return the columns of each image whose values are unknown, NULL for none.

        `dropped` columns, which the source does not send any more, do not make a row incomplete.
        """
        others = {*dropped, *(column.name for column in columns.key)}
        there = self.steps != NONE
        names = [name for name in self.value_steps if name not in others]
        return _list_names(
            {name: there & (self.value_steps[name] == NONE) for name in names}, len(self.steps)
        )


class ImageFinder:
    """Answers questions about the steps of one timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._image = _last_in(timeline.is_image)
        self._life_start = _last_in(timeline.begins_life)
        self._value = {name: _last_in(timeline.is_image & ~lacks) for name, lacks in timeline.lacks.items()}

    def find_last_images(self, steps: Int64s) -> Images:
        """Return the last image of each step's key, up to that step."""
        images = self._image[steps]
        there = images != NONE
        there &= self._timeline.key[images] == self._timeline.key[steps]
        return self.find_values(np.where(there, images, NONE))

    def find_values(self, images: Int64s) -> Images:
        """Return these images with the steps that supply their values."""
        value_steps = {name: self._find_value_steps(name, images) for name in self._value}
        is_open = self._carry_over(images, value_steps)
        return Images(self._timeline, images, value_steps, is_open)

    def _find_value_steps(self, name: str, images: Int64s) -> Int64s:
        there = images != NONE
        steps = self._value[name][images]
        return np.where(there & (steps >= self._life_start[images]), steps, NONE)

    def _carry_over(self, images: Int64s, value_steps: dict[str, Int64s]) -> Bools:
        """Add the steps of older keys to `value_steps`; return which images miss the delete of such a key."""
        timeline = self._timeline
        is_open = np.zeros(len(images), bool)
        if not timeline.comes_from_other_key.any():
            return is_open
        deletes = self._find_delete_of_create()
        wanted = np.flatnonzero(images != NONE)
        creates = self._life_start[images[wanted]]
        while len(wanted):
            lacks_value = np.zeros(len(wanted), bool)
            for steps in value_steps.values():
                lacks_value |= steps[wanted] == NONE
            moved = lacks_value & timeline.comes_from_other_key[creates]
            wanted, ended = wanted[moved], deletes[creates[moved]]
            is_open[wanted[ended == NONE]] = True
            wanted, before = self._find_rows_before(wanted, ended)
            for name, steps in value_steps.items():
                found = self._find_value_steps(name, before)
                steps[wanted] = np.where(steps[wanted] == NONE, found, steps[wanted])
            creates = self._life_start[before]
        return is_open

    def _find_rows_before(self, wanted: Int64s, ended: Int64s) -> tuple[Int64s, Int64s]:
        """Return which of the wanted had a row when their old key was deleted, and the image of that row."""
        timeline = self._timeline
        wanted, ended = wanted[ended != NONE], ended[ended != NONE]
        before = ended - 1
        there = (before >= 0) & (timeline.key[before] == timeline.key[ended]) & ~timeline.ends_life[before]
        there &= timeline.clearings_after[before] == timeline.clearings_after[ended]
        return wanted[there], before[there]

    def _find_delete_of_create(self) -> Int64s:
        """Return for each step by which a row came from another key the delete of that key, or `NONE`."""
        timeline = self._timeline
        creates = np.flatnonzero(timeline.comes_from_other_key)
        deletes = np.flatnonzero(timeline.ends_life & ~timeline.is_stored)
        ids = self._change_ids(np.concatenate([deletes, creates]))
        _, numbers = np.unique(ids, axis=0, return_inverse=True)
        delete_of = np.full(numbers.max() + 1, NONE, np.int64)
        delete_of[numbers[: len(deletes)]] = deletes
        found = np.full(len(timeline.key), NONE, np.int64)
        found[creates] = delete_of[numbers[len(deletes) :]]
        return found

    def _change_ids(self, steps: Int64s) -> Int64s:
        """Return what delete and create of one change have in common. Logs of two servers do not compare."""
        timeline = self._timeline
        events = timeline.row[steps] - len(timeline.stored)
        topics = timeline.events.topic.take(pa.array(events)).dictionary_encode().indices
        ids = timeline.places.take(steps).change_ids()
        return np.column_stack([topics.to_numpy(zero_copy_only=False), ids])


def _last_in(mask: Bools) -> Int64s:
    """Return the last step up to each step that is in the mask, or `NONE`."""
    return np.maximum.accumulate(np.where(mask, np.arange(len(mask)), NONE))


def _list_names(masks: Mapping[str, Bools], count: int) -> pa.Array:
    """Return for each row the names whose mask has it; NULL where none does."""
    kind = pa.list_(pa.string())
    if not any(mask.any() for mask in masks.values()):
        return pa.nulls(count, kind)
    matrix = np.stack(list(masks.values()), axis=1)
    _, names = np.nonzero(matrix)
    counts = matrix.sum(axis=1)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(list(masks)).take(pa.array(names)))
    return pc.if_else(pa.array(counts > 0), lists, pa.scalar(None, kind))

"""The state of each key after its last step, and the rows of silver that follow from it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.debezium.operations import Operation
from cdc_lakehouse.fold.arrays import Bools, Int64s
from cdc_lakehouse.fold.images import ImageFinder, Images
from cdc_lakehouse.fold.timeline import Timeline


@dataclass(frozen=True, slots=True)
class FoldedKeys:
    """The arrays have one item per key that has a step."""

    timeline: Timeline
    last: Int64s
    """Last step of the key."""
    images: Images
    """Last image of the key."""
    is_deleted: Bools
    is_cleared: Bools
    """Keys whose row ended with a truncate, a snapshot or a sweep, without a delete of its own."""

    @property
    def is_changed(self) -> Bools:
        """Return which keys have a new step, or a stored row that was cleared away."""
        was_alive = ~self.timeline.ends_life[self.last]
        return ~self.timeline.is_stored[self.last] | (self.is_cleared & was_alive)

    def open_keys(self) -> pa.StructArray:
        """Return the keys that have to be folded again with the events of the keys that they had before."""
        return self.timeline.take_keys(self.last[self.images.is_open])

    def to_rows(
        self, columns: TableColumns, *, dropped: Collection[str] = (), with_deleted: bool = False
    ) -> pa.Table:
        """Return a row of silver for each key, deleted ones as well.

        `dropped` columns, which the source does not send any more, do not make a row incomplete.
        `with_deleted` adds the mark of a table that keeps deleted rows.
        """
        places = self.timeline.places.take(self.last)
        operations = self.timeline.take_operations(self.last)
        rows = {
            **self.images.take_rows(columns, self.last),
            "_cdc_op": pc.if_else(pa.array(self.is_cleared), Operation.TRUNCATE.value, operations),
            "_cdc_position": places.to_position(),
            "_cdc_tx_id": places.to_tx_ids(),
            "_cdc_commit_ts": self.timeline.take_times(self.last),
            "_cdc_incomplete": self.images.list_incomplete(columns, dropped=dropped),
        }
        if with_deleted:
            rows["_cdc_deleted"] = pa.array(self.is_deleted)
        return pa.table(rows)


def fold(timeline: Timeline) -> FoldedKeys:
    """Return the state of each key after its last step."""
    last = timeline.lasts
    was_deleted = timeline.ends_life[last]
    is_cleared = ~was_deleted & (timeline.is_cleared(last) | timeline.is_swept(last))
    images = ImageFinder(timeline).find_last_images(last)
    return FoldedKeys(timeline, last, images, is_deleted=was_deleted | is_cleared, is_cleared=is_cleared)

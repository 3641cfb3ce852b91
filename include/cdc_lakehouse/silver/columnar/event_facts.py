"""Count the records of a merge before they are folded, as `silver.examine` does with Spark."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.debezium.operations import ERASED, ROW_OPERATIONS, Operation
from cdc_lakehouse.fold.arrays import Bools, Int64s, as_mask, as_numbers, has_operation
from cdc_lakehouse.fold.inputs import EPOCH
from cdc_lakehouse.lake.applied import NewestWriter, Reached
from cdc_lakehouse.lake.instants import instant
from cdc_lakehouse.silver.examine import SNAPSHOT_ENDS, WorkFacts

_KNOWN = {*ROW_OPERATIONS, Operation.MESSAGE}


def examine_plain_rows(rows: pa.Table) -> WorkFacts | None:
    """Return the facts about rows all of which can be applied by key, one by one.

    None where one of them asks for more: a record that was not decoded or was erased, an event without a key
    or a position, an unknown operation, a truncate, or the end of a snapshot.
    """
    op = rows["op"].combine_chunks()
    has_op = as_mask(op.is_valid())
    is_row = as_mask(pc.is_in(op, pa.array(sorted(ROW_OPERATIONS))))
    is_known = ~has_op | as_mask(pc.is_in(op, pa.array(sorted(_KNOWN))))
    if (
        rows["decode_error"].null_count < len(rows)
        or not is_known.all()
        or as_mask(pc.equal(op, ERASED)).any()
    ):
        return None
    if "key" not in rows.column_names:
        return None
    events = _Events(rows.filter(pa.array(is_row)))
    if events.lacks_key_or_position or events.ends_snapshot:
        return None
    timestamps = pc.struct_field(rows["source"], "ts").cast(pa.int64())
    lowest, highest = events.find_ends()
    return WorkFacts(
        read=len(rows),
        undecodable=0,
        undecoded=0,
        ignored=int(len(rows) - is_row.sum()),
        truncates=0,
        errors_by_code={},
        seen_through=instant(pc.max(timestamps).as_py()),
        lowest=lowest,
        highest=highest,
        turned_back=events.turned_back,
        unavailable=events.unavailable,
        moves=int((events.lacks_any & events.has_op(Operation.CREATE)).sum()),
        sends_again=events.sends_again,
        deletes=int(events.has_op(Operation.DELETE).sum()),
        newest_writers=events.find_newest_writers(),
        snapshot_rows=int((events.phase == 0).sum()),
        reads=int(events.has_op(Operation.READ).sum()),
    )


class _Events:
    """Columns of events of one row each, as arrays."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows
        position, source = rows["position"].combine_chunks(), rows["source"].combine_chunks()
        self.epoch = as_numbers(rows[EPOCH])
        self.phase, self.commit = (as_numbers(position.field(name)) for name in ("phase", "commit"))
        self._is_streamed = as_numbers(position.field("streamed")) == 1
        self._offset = as_numbers(rows["offset"])
        self._tx_id, self._has_tx = (
            as_numbers(source.field("tx_id")),
            as_mask(source.field("tx_id").is_valid()),
        )
        self._snapshot = source.field("snapshot")
        self.lacks_any = as_mask(pc.greater(pc.list_value_length(rows["unavailable"]), 0))
        places = [_encode(rows["topic"]), as_numbers(rows["partition"]), self.epoch]
        self._partition = _number_rows(places)

    @property
    def lacks_key_or_position(self) -> bool:
        return bool(self._rows["key"].null_count or self._rows["position"].null_count)

    @property
    def ends_snapshot(self) -> bool:
        ends = as_mask(pc.is_in(self._snapshot, pa.array(SNAPSHOT_ENDS)))
        return bool((ends & (self.phase == 0)).any())

    @property
    def unavailable(self) -> tuple[str, ...]:
        """Return the columns that some event lacks."""
        names = pc.unique(pc.list_flatten(self._rows["unavailable"])).to_pylist()
        return tuple(sorted(names)) if self.lacks_any.any() else ()

    def has_op(self, operation: Operation) -> Bools:
        return has_operation(self._rows["op"], operation)

    def find_ends(self) -> tuple[Reached | None, Reached | None]:
        """Return the lowest and the highest epoch with the commit before the event."""
        if not len(self.epoch):
            return None, None
        order = np.lexsort((self.commit, self.epoch))
        lowest, highest = order[0], order[-1]
        return (
            (int(self.epoch[lowest]), int(self.commit[lowest])),
            (int(self.epoch[highest]), int(self.commit[highest])),
        )

    @property
    def turned_back(self) -> bool:
        """Return whether the last streamed event of a partition names an older commit than one before it."""
        partition, commit = self._partition[self._is_streamed], self.commit[self._is_streamed]
        order = np.lexsort((self._offset[self._is_streamed], partition))
        partition, commit = partition[order], commit[order]
        for last in (
            np.flatnonzero(np.append(partition[1:] != partition[:-1], True)) if len(partition) else ()
        ):
            if commit[last] < commit[partition == partition[last]].max():
                return True
        return False

    @property
    def sends_again(self) -> bool:
        """Return whether a transaction names two commits before it."""
        transaction = self._number_transactions()[self._has_tx]
        commit = self.commit[self._has_tx]
        order = np.lexsort((commit, transaction))
        same = transaction[order][1:] == transaction[order][:-1]
        return bool((same & (commit[order][1:] != commit[order][:-1])).any())

    def find_newest_writers(self) -> Mapping[str, NewestWriter]:
        """Return the writer of each topic's newest event: by position, since a block that is sent again has
        the highest offsets."""
        if not len(self.epoch):
            return {}
        transaction = self._number_transactions()
        highest, last = (_reduce_max(values, transaction) for values in (self.commit, self._offset))
        topics, writers = self._rows["topic"].to_pylist(), self._rows["value_schema_id"].to_pylist()
        # The last event of each transaction, from the lowest to the highest one of each partition.
        is_last = self._offset == last[transaction]
        rows = np.flatnonzero(is_last)
        rows = rows[np.lexsort((self._offset[rows], highest[transaction[rows]], self._partition[rows]))]
        partition = self._partition[rows]
        newest_of_partitions = rows[np.append(partition[1:] != partition[:-1], True)]
        reached_commit = _reduce_max(self.commit, self._partition)
        reached = {
            int(row): (int(self.epoch[row]), int(reached_commit[self._partition[row]]))
            for row in newest_of_partitions
        }
        newest = {
            topics[row]: (row, place) for row, place in sorted(reached.items(), key=lambda item: item[1])
        }
        return {
            topic: NewestWriter(writers[row], place)
            for topic, (row, place) in newest.items()
            if writers[row] is not None
        }

    def _number_transactions(self) -> Int64s:
        return _number_rows([self._partition, self.phase, self._has_tx.astype(np.int64), self._tx_id])


def _number_rows(columns: list[Int64s]) -> Int64s:
    """Number the combinations of values that occur."""
    _, numbers = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return numbers.reshape(-1).astype(np.int64)


def _reduce_max(values: Int64s, groups: Int64s) -> Int64s:
    highest = np.full(int(groups.max()) + 1, np.iinfo(np.int64).min)
    np.maximum.at(highest, groups, values)
    return highest


def _encode(column: pa.ChunkedArray) -> Int64s:
    codes: Int64s = column.combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    return codes.astype(np.int64)

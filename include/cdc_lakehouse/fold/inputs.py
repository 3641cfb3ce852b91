"""The inputs of a fold: events of bronze, what silver has of their keys, and where the table was cleared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.debezium.operations import ROW_OPERATIONS, Operation
from cdc_lakehouse.fold.arrays import Bools, as_array, as_mask, has_operation
from cdc_lakehouse.fold.places import Places
from cdc_lakehouse.lake.place import Place

EPOCH = "source_epoch"
"""Column of bronze rows: their source epoch, which the ledger knows and the record does not."""
_ROW_OPERATIONS = pa.array(sorted(ROW_OPERATIONS))


@dataclass(frozen=True, slots=True)
class Events:
    """Decoded events that concern one row each, in any order."""

    key: pa.StructArray
    op: pa.Array
    after: pa.StructArray
    lacks: Mapping[str, Bools]
    """Column -> events whose image does not hold its value: it was unavailable, or not sent."""
    places: Places
    commit_times: pa.Array
    topic: pa.Array

    @classmethod
    def from_bronze(cls, rows: pa.Table) -> Events:
        """Return the events among the rows: tombstones, messages and undecodable records are none."""
        is_event = pc.and_(rows["decode_error"].is_null(), pc.is_in(rows["op"], _ROW_OPERATIONS))
        rows = rows.filter(is_event)
        source = as_array(rows["source"])
        places = Places.from_columns(
            as_array(rows["position"]), source.field("tx_id"), epoch=as_array(rows[EPOCH])
        )
        return cls(
            key=as_array(rows["key"]),
            op=as_array(rows["op"]),
            after=as_array(rows["after"]),
            lacks=_masks_of_names(as_array(rows["unavailable"])),
            places=places,
            commit_times=source.field("ts"),
            topic=as_array(rows["topic"]),
        )

    def __len__(self) -> int:
        return len(self.op)

    def with_one_commit(self) -> Events:
        """Return the events with one commit before each transaction, the smallest that an event names.

        A transaction that is sent again may name another (rule 2.2).
        """
        topics = self.topic.dictionary_encode().indices.to_numpy(zero_copy_only=False)
        ids = np.column_stack([topics, self.places.transaction_ids()])
        _, numbers = np.unique(ids, axis=0, return_inverse=True)
        smallest = np.full(len(ids), np.iinfo(np.int64).max)
        np.minimum.at(smallest, numbers, self.places.commits)
        commits = np.where(self.places.has_tx_id, smallest[numbers], self.places.commits)
        return replace(self, places=self.places.with_commits(commits))

    @property
    def is_delete(self) -> Bools:
        return has_operation(self.op, Operation.DELETE)

    @property
    def is_create(self) -> Bools:
        return has_operation(self.op, Operation.CREATE)


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Rows that silver has of the keys of the events, each key once."""

    key: pa.StructArray
    values: pa.Table
    """Columns of the source, as far as the fold needs them, and `_cdc_op` and `_cdc_commit_ts`."""
    places: Places
    is_deleted: Bools
    """Rows that are marked as deleted and kept."""
    lacks: Mapping[str, Bools]
    """Column -> rows whose value is unknown."""

    @classmethod
    def from_silver(cls, rows: pa.Table, keys: Sequence[str]) -> StoredRows:
        columns = [as_array(rows[name]) for name in keys]
        deleted = np.zeros(len(rows), bool)
        if "_cdc_deleted" in rows.column_names:
            deleted = as_mask(as_array(rows["_cdc_deleted"]))
        return cls(
            key=pa.StructArray.from_arrays(columns, names=list(keys)),
            values=rows,
            places=Places.from_columns(as_array(rows["_cdc_position"]), as_array(rows["_cdc_tx_id"])),
            is_deleted=deleted,
            lacks=_masks_of_names(as_array(rows["_cdc_incomplete"])),
        )

    def __len__(self) -> int:
        return len(self.key)


@dataclass(frozen=True, slots=True)
class Tombstones:
    """Places at which keys were deleted for good. A key may have several."""

    key: pa.StructArray
    places: Places

    @classmethod
    def from_table(cls, rows: pa.Table, keys: Sequence[str]) -> Tombstones:
        columns = [as_array(rows[name]) for name in keys]
        places = Places.from_columns(as_array(rows["_cdc_position"]), as_array(rows["_cdc_tx_id"]))
        return cls(pa.StructArray.from_arrays(columns, names=list(keys)), places)


@dataclass(frozen=True, slots=True)
class Clearings:
    """Places at which all older rows of a table ended."""

    cleared: Sequence[Place] = ()
    """Truncates, and the beginnings of repeated snapshots: rows that come after it begin another life."""
    swept: Place | None = None
    """Rows whose newest event is older were missing when the source was read again. Other rows keep their
    values across it."""
    applied: Place | None = None
    """The newest of all that silver has applied: an event that is older comes late."""


@dataclass(frozen=True, slots=True)
class Ending:
    """A place and time at which rows ended beside their own events, for a history."""

    place: Place
    """For a repeated snapshot this is its start, with its transaction."""
    time: int
    """Microseconds."""
    is_sweep: bool = False


@dataclass(frozen=True, slots=True)
class StoredVersions:
    """Versions that the history has of the keys of the events."""

    key: pa.StructArray
    is_open: Bools
    places: Places
    """Places at which they start."""
    operations: pa.Array
    starts: pa.Array
    """Times at which they start."""
    ends: pa.Array
    """Times at which they end, NULL for open ones."""

    @classmethod
    def from_history(cls, rows: pa.Table, keys: Sequence[str]) -> StoredVersions:
        columns = [as_array(rows[name]) for name in keys]
        return cls(
            pa.StructArray.from_arrays(columns, names=list(keys)),
            is_open=as_mask(as_array(rows["_cdc_to"]).is_null()),
            places=Places.from_columns(as_array(rows["_cdc_from"]), as_array(rows["_cdc_tx_id"])),
            operations=as_array(rows["_cdc_op"]),
            starts=as_array(rows["_cdc_from_ts"]),
            ends=as_array(rows["_cdc_to_ts"]),
        )

    def __len__(self) -> int:
        return len(self.key)


def _masks_of_names(lists: pa.Array) -> Mapping[str, Bools]:
    """Return for each name that occurs in a list which of the lists have it."""
    names, rows = lists.flatten(), pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)
    masks = {}
    for name in names.unique().to_pylist():
        mask = np.zeros(len(lists), bool)
        mask[rows[as_mask(pc.equal(names, name))]] = True
        masks[name] = mask
    return masks

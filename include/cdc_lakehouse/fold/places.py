"""Places of many events in the order of the source, as numpy columns (`cdc-semantics` rules 2.1 and 2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cdc_lakehouse.fold.arrays import Bools, Int64s, as_numbers
from cdc_lakehouse.lake.place import Place

FIELDS = ("epoch", "phase", "commit", "streamed", "row", "order_in_tx", "kind")
_EPOCH, _PHASE, _COMMIT, _STREAMED, _ROW = range(5)


@dataclass(frozen=True, slots=True)
class Places:
    """Positions and transactions; the array twin of `lake.place.Place`."""

    fields: Int64s
    """One line for each of `FIELDS`."""
    tx_ids: Int64s
    has_tx_id: Bools

    @classmethod
    def from_columns(
        cls, position: pa.StructArray, tx_ids: pa.Array, *, epoch: pa.Array | None = None
    ) -> Places:
        """Return the places of rows. The position of a bronze row lacks the epoch, which the ledger knows."""
        names = FIELDS if epoch is None else FIELDS[1:]
        columns = [*([] if epoch is None else [epoch]), *(position.field(name) for name in names)]
        fields = np.empty((len(FIELDS), len(position)), np.int64)
        for line, column in enumerate(columns):
            fields[line] = as_numbers(column)
        return cls(fields, as_numbers(tx_ids), tx_ids.is_valid().to_numpy(zero_copy_only=False))

    @classmethod
    def of_one(cls, place: Place) -> Places:
        """Return the place as an array that compares with an array of any length."""
        fields = np.array(place.position, np.int64).reshape(len(FIELDS), 1)
        tx_id = 0 if place.tx_id is None else place.tx_id
        return cls(fields, np.array([tx_id], np.int64), np.array([place.tx_id is not None]))

    @classmethod
    def of_all(cls, places: Sequence[Place]) -> Places:
        fields = np.array([place.position for place in places], np.int64).T
        tx_ids = np.array([place.tx_id or 0 for place in places], np.int64)
        return cls(fields, tx_ids, np.array([place.tx_id is not None for place in places]))

    @classmethod
    def choose(cls, mask: Bools, ones: Places, others: Places) -> Places:
        """Return those of `ones` where the mask is true, else those of `others`."""
        return cls(
            np.where(mask, ones.fields, others.fields),
            np.where(mask, ones.tx_ids, others.tx_ids),
            np.where(mask, ones.has_tx_id, others.has_tx_id),
        )

    def __len__(self) -> int:
        return len(self.tx_ids)

    def take(self, index: Int64s | Bools) -> Places:
        return Places(self.fields[:, index], self.tx_ids[index], self.has_tx_id[index])

    def followed_by(self, others: Places) -> Places:
        """Return an array of these places and, after them, the others."""
        return Places(
            np.concatenate([self.fields, others.fields], axis=1),
            np.concatenate([self.tx_ids, others.tx_ids]),
            np.concatenate([self.has_tx_id, others.has_tx_id]),
        )

    def is_after(self, others: Places) -> Bools:
        """Compare the arrays element by element.

        Within a transaction the commit before it does not count: one that is sent again may name another.
        """
        is_greater = self._is_greater(others, first=_STREAMED)
        in_one_transaction = (
            self.has_tx_id
            & others.has_tx_id
            & (self.tx_ids == others.tx_ids)
            & (self.fields[_EPOCH] == others.fields[_EPOCH])
            & (self.fields[_PHASE] == others.fields[_PHASE])
        )
        return np.where(in_one_transaction, is_greater, self._is_greater(others, first=0))

    def with_commits(self, commits: Int64s) -> Places:
        """Return the places with these numbers as the commit before each."""
        fields = self.fields.copy()
        fields[_COMMIT] = commits
        return Places(fields, self.tx_ids, self.has_tx_id)

    @property
    def commits(self) -> Int64s:
        commits: Int64s = self.fields[_COMMIT]
        return commits

    def change_ids(self) -> Int64s:
        """Return what the delete and the create of one changed key have in common, a line for each place."""
        return np.stack(
            [
                self.fields[_EPOCH],
                self.fields[_ROW],
                np.where(self.has_tx_id, self.tx_ids, 0),
                self.has_tx_id,
            ],
            axis=1,
        )

    def transaction_ids(self) -> Int64s:
        """Return what all events of one transaction have in common, a line for each place."""
        return np.stack([self.fields[_EPOCH], self.fields[_PHASE], self.tx_ids], axis=1)

    def to_position(self) -> pa.StructArray:
        return pa.StructArray.from_arrays([pa.array(line) for line in self.fields], names=list(FIELDS))

    def to_tx_ids(self) -> pa.Array:
        return pa.array(self.tx_ids, mask=~self.has_tx_id)

    def _is_greater(self, others: Places, *, first: int) -> Bools:
        """Compare the fields from `first` on, from left to right."""
        is_greater: Bools = self.fields[-1] > others.fields[-1]
        for mine, other in zip(self.fields[first:-1][::-1], others.fields[first:-1][::-1], strict=True):
            is_greater = (mine > other) | ((mine == other) & is_greater)
        return is_greater

"""Values of some rows of a group, laid out over all of its rows with nulls between."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa


class Spread:
    """`present` is a mask over the whole group; values come for those rows only, in their order."""

    def __init__(self, present: np.ndarray) -> None:
        self.present = present
        self.rows = np.flatnonzero(present)
        self._places: dict[int, pa.Array] = {}

    def __len__(self) -> int:
        return len(self.present)

    @cached_property
    def validity(self) -> pa.Buffer:
        return pa.py_buffer(np.packbits(self.present, bitorder="little"))

    def numbers(self, values: np.ndarray) -> np.ndarray:
        full = np.zeros(len(self), values.dtype)
        full[self.rows] = values
        return full

    def places(self, step: int = 1) -> pa.Array:
        """Per row of the group, the index of its value, times `step`; to `take` by."""
        if step not in self._places:
            indices = self.numbers(np.arange(0, len(self.rows) * step, step, dtype=np.int32))
            buffers = [self.validity, pa.py_buffer(indices)]
            self._places[step] = pa.Array.from_buffers(pa.int32(), len(self), buffers)
        return self._places[step]

    def of(self, present: np.ndarray) -> Spread:
        """Of some of its own values, over the same rows."""
        rows = np.zeros(len(self), bool)
        rows[self.rows[present]] = True
        return Spread(rows)

    def under(self, values: pa.Array) -> pa.Array:
        """Flat values that already are one per row of the group, null where none belongs."""
        if values.null_count == len(values):
            return values
        return pa.Array.from_buffers(values.type, len(values), [self.validity, *values.buffers()[1:]])


def numbers_array(type_: pa.DataType, values: np.ndarray, spread: Spread | None) -> pa.Array:
    """An Arrow array over the memory of `values`."""
    if spread is None:
        return pa.Array.from_buffers(type_, len(values), [None, pa.py_buffer(values)], 0)
    full = spread.numbers(values)
    return pa.Array.from_buffers(type_, len(full), [spread.validity, pa.py_buffer(full)])


def spread_out(values: pa.Array, spread: Spread | None) -> pa.Array:
    """Any array, with a copy."""
    return values if spread is None else values.take(spread.places())

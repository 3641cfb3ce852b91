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
        indices = self.numbers(np.arange(0, len(self.rows) * step, step, dtype=np.int32))
        return pa.Array.from_buffers(pa.int32(), len(self), [self.validity, pa.py_buffer(indices)])


def numbers_array(type_: pa.DataType, values: np.ndarray, spread: Spread | None) -> pa.Array:
    """An Arrow array over the memory of `values`."""
    if spread is None:
        return pa.Array.from_buffers(type_, len(values), [None, pa.py_buffer(values)], 0)
    full = spread.numbers(values)
    return pa.Array.from_buffers(type_, len(full), [spread.validity, pa.py_buffer(full)])


def spread_out(values: pa.Array, spread: Spread | None) -> pa.Array:
    """Any array, with a copy."""
    return values if spread is None else values.take(spread.places())

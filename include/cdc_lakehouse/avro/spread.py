"""Values of some rows of a group, laid out over all of its rows with nulls between."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from cdc_lakehouse.avro.typed.columns import numbers_of, numbers_of_offsets, present, sizes_of


class Spread:
    """`present` is a mask over the whole group; values come for those rows only, in their order."""

    def __init__(self, present: np.ndarray) -> None:
        self.present = present
        self.rows = np.flatnonzero(present)
        self._places: dict[int, pa.Array] = {}

    @classmethod
    def at(cls, rows: Sequence[int], count: int) -> Spread:
        present = np.zeros(count, bool)
        present[rows] = True
        return cls(present)

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
    if spread is None:
        return values
    type_ = values.type
    if pa.types.is_struct(type_):
        children = [spread_out(values.field(place), spread) for place in range(type_.num_fields)]
        return pa.Array.from_buffers(type_, len(spread), [_validity(values, spread)], children=children)
    width = _whole_bytes(type_)
    if width:
        # A few values into a column of zeros: a tenth of what `take` needs to find that most are missing.
        full = spread.numbers(numbers_of(values, f"V{width}"))
        return pa.Array.from_buffers(type_, len(full), [_validity(values, spread), pa.py_buffer(full)])
    if pa.types.is_binary(type_) or pa.types.is_string(type_):
        ends = np.zeros(len(spread) + 1, np.int32)
        ends[1:][spread.rows] = sizes_of(values)
        # Added up where the first value begins, which need not be the buffer's beginning.
        ends[0] = numbers_of_offsets(values)[0]
        np.cumsum(ends, out=ends)
        buffers = [_validity(values, spread), pa.py_buffer(ends), values.buffers()[2]]
        return pa.Array.from_buffers(type_, len(spread), buffers)
    return values.take(spread.places())


def _whole_bytes(type_: pa.DataType) -> int:
    """Of each value; 0 where that differs, or where values share bytes."""
    if pa.types.is_primitive(type_) or pa.types.is_decimal(type_) or pa.types.is_fixed_size_binary(type_):
        return int(type_.bit_width) // 8
    return 0


def _validity(values: pa.Array, spread: Spread) -> pa.Buffer:
    if not values.null_count:
        return spread.validity
    return pa.py_buffer(np.packbits(spread.numbers(present(values)), bitorder="little"))

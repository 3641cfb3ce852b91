"""What converters of columns are, and the memory under a column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Refused = np.ndarray | None
"""A mask of the values that the converter of single values would refuse; None where there are none."""
ConvertColumn = Callable[[pa.Array], tuple[pa.Array, Refused]]
"""Equal converters compare equal, so that records of different schema ids can share one group."""


def numbers_of(column: pa.Array, dtype: Any) -> np.ndarray:
    """The values as they lie in memory; whatever at nulls."""
    return _items(column.buffers()[1], dtype, column.offset, len(column))


def with_numbers(column: pa.Array, numbers: np.ndarray, type_: pa.DataType) -> pa.Array:
    """Other values under the same nulls."""
    if column.null_count == 0:
        return pa.Array.from_buffers(type_, len(numbers), [None, pa.py_buffer(numbers)], 0)
    validity = column.buffers()[0]
    if column.offset:
        validity = pa.py_buffer(np.packbits(present(column), bitorder="little"))
    return pa.Array.from_buffers(type_, len(numbers), [validity, pa.py_buffer(numbers)], column.null_count)


def present(column: pa.Array) -> np.ndarray:
    if column.null_count == 0:
        return np.ones(len(column), bool)
    mask: np.ndarray = pc.is_valid(column).to_numpy(zero_copy_only=False)
    return mask


def validity_of(column: pa.Array) -> pa.Buffer | None:
    """For an array that begins where the column does."""
    return pa.py_buffer(np.packbits(present(column), bitorder="little")) if column.null_count else None


def refused_of(column: pa.Array, wrong: np.ndarray) -> Refused:
    """`wrong` says nothing about nulls."""
    found: np.ndarray = wrong & present(column)
    return found if found.any() else None


def numbers_of_offsets(column: pa.Array) -> np.ndarray:
    """One more than values."""
    if not len(column):
        return np.zeros(1, np.int32)
    return _items(column.buffers()[1], np.int32, column.offset, len(column) + 1)


def sizes_of(column: pa.Array) -> np.ndarray:
    """Bytes per value."""
    sizes: np.ndarray = np.diff(numbers_of_offsets(column).astype(np.int64))
    return sizes


def _items(buffer: pa.Buffer | None, dtype: Any, start: int, count: int) -> np.ndarray:
    """A buffer may be longer than what it holds, and of any length then."""
    size = np.dtype(dtype).itemsize
    return np.frombuffer(buffer or b"", np.uint8)[start * size : (start + count) * size].view(dtype)

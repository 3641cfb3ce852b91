"""Columns of decimals: big-endian two's complement of any length into 128-bit words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cdc_lakehouse.avro.typed.columns import Refused, numbers_of_offsets, present, sizes_of, validity_of

_WORD, LONGEST = 8, 16
_MASK = 2**64 - 1


@dataclass(frozen=True, slots=True)
class DecimalColumn:
    """Twin of `values.decimal_of`.

    Also refuses what is longer than 16 bytes: hardly anything of the column's precision, and the reader
    of single records, which is asked about every refused row, knows what to do with it.
    """

    precision: int
    scale: int

    def __call__(self, column: pa.Array) -> tuple[pa.Array, Refused]:
        type_ = pa.decimal128(self.precision, self.scale)
        there = present(column)
        size = sizes_of(column)
        low, high = words_of(column)
        wrong = self._out_of_range(low, high) | (size == 0) | (size > LONGEST)
        wrong &= there
        any_wrong = wrong.any()
        final = np.empty((len(column), 2), np.int64)
        final[:, 0], final[:, 1] = low, high
        if any_wrong or column.null_count:
            final[wrong | ~there] = 0
        buffers = [validity_of(column), pa.py_buffer(final)]
        array = pa.Array.from_buffers(type_, len(column), buffers, column.null_count)
        return array, wrong if any_wrong else None

    def _out_of_range(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        limit = 10**self.precision
        wrong: np.ndarray
        if self.precision <= 18:
            wrong = (high != low >> 63) | (low >= limit) | (low <= -limit)
        else:
            wrong = ~(_less(low, high, limit) & _more(low, high, -limit))
        return wrong


def words_of(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Low and high word: one load of eight bytes that ends where the value ends, and a second before
    that where values are longer; shifting there and back drops what belongs to the value before."""
    end, size = numbers_of_offsets(column)[1:].astype(np.int64), sizes_of(column)
    data = np.frombuffer(column.buffers()[2] or b"", np.uint8)
    padded = np.zeros(len(data) + LONGEST, np.uint8)
    padded[LONGEST:] = data
    words = np.ndarray((len(padded) - _WORD + 1,), "V8", padded, strides=(1,))
    low = words[end + (LONGEST - _WORD)].view(">i8").astype(np.int64)
    if not len(size) or size.max() <= _WORD:
        low = _signed(low, 64 - 8 * size)
        return low, low >> 63
    high = words[end].view(">i8").astype(np.int64)
    short = size <= _WORD
    low = np.where(short, _signed(low, 64 - 8 * size), low)
    high = np.where(short, low >> 63, _signed(high, 128 - 8 * size))
    return low, high


def _signed(word: np.ndarray, foreign: np.ndarray) -> np.ndarray:
    """Without the upper bits that are `foreign`; the sign takes their place."""
    bits = np.clip(foreign, 0, 63)
    word = word << bits
    word >>= bits
    return word


def _less(low: np.ndarray, high: np.ndarray, limit: int) -> np.ndarray:
    found: np.ndarray = (high < limit >> 64) | (
        (high == limit >> 64) & (low.view(np.uint64) < np.uint64(limit & _MASK))
    )
    return found


def _more(low: np.ndarray, high: np.ndarray, limit: int) -> np.ndarray:
    found: np.ndarray = (high > limit >> 64) | (
        (high == limit >> 64) & (low.view(np.uint64) > np.uint64(limit & _MASK))
    )
    return found

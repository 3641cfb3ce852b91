"""Columns of bytes with a length: bytes, string, fixed.

Values are not copied one by one: their places in the batch become the offsets of one Arrow array over
the batch's own memory, a value in every even slot and whatever lies between two values in the odd ones,
and one `take` of the even slots copies the column.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.avro.cursors import Cursors
from cdc_lakehouse.avro.memory import WIDEST
from cdc_lakehouse.avro.spread import Spread
from cdc_lakehouse.avro.varints import read_longs

_FARTHEST = 1 << 40
_FEW = 8
"""So many values are sooner looked at one by one."""


class BytesColumn:
    type = pa.binary()

    def read(self, cursors: Cursors, spread: Spread | None = None) -> pa.Array:
        return _read(cursors, spread)

    def skip(self, cursors: Cursors) -> None:
        cursors.jump(read_longs(cursors))


class FixedColumn:
    type = pa.binary()

    def __init__(self, size: int) -> None:
        self._size = min(size, _FARTHEST)

    def read(self, cursors: Cursors, spread: Spread | None = None) -> pa.Array:
        start = np.minimum(cursors.at, cursors.end)
        cursors.move(self._size)
        return _taken(_slots(start, cursors), spread)

    def skip(self, cursors: Cursors) -> None:
        cursors.move(self._size)


class StringColumn(BytesColumn):
    """UTF-8 is checked for the column at once; only where that fails are single values looked at."""

    type = pa.string()

    def read(self, cursors: Cursors, spread: Spread | None = None) -> pa.Array:
        column = _read(cursors, spread)
        data = np.frombuffer(column.buffers()[2] or b"", np.uint8)
        if len(data) == 0 or data.max() < 0x80:
            return column.view(pa.string())
        wrong = _not_text(column)
        if len(wrong) == 0:
            return column.view(pa.string())
        cursors.fail(wrong if spread is None else np.searchsorted(spread.rows, wrong))
        return _blanked(column, data, wrong)

    def skip(self, cursors: Cursors) -> None:
        self.read(cursors)


def _read(cursors: Cursors, spread: Spread | None) -> pa.Array:
    size = read_longs(cursors)
    start = np.minimum(cursors.at, cursors.end)
    cursors.jump(size)
    same = spread is None and len(size) > 0 and 0 < size[0] <= WIDEST
    if same and not (size == size[0]).all():
        # A few corrupt rows shall not cost the others the short way; theirs mean nothing anyhow.
        lost = cursors.lost()
        same = bool(((size == size[0]) | lost).all())
        start[lost & same] = start[0]
    if not same:
        return _taken(_slots(start, cursors), spread)
    # Nearly every fixed text, code, time and UUID: one gather instead of offsets and a take.
    width = int(size[0])
    buffers = [None, _steps(len(start), width), pa.py_buffer(cursors.memory.pieces(width)[start])]
    return pa.Array.from_buffers(pa.binary(), len(start), buffers, 0)


@lru_cache(maxsize=64)
def _steps(count: int, size: int) -> pa.Buffer:
    return pa.py_buffer(np.arange(0, (count + 1) * size, size, dtype=np.int32)[: count + 1])


def _slots(start: np.ndarray, cursors: Cursors) -> pa.Array:
    """From `start` to the cursors; a bad row's value ends where the row does."""
    offsets = np.empty(2 * len(start) + 1, np.int32)
    offsets[0:-1:2] = start
    offsets[1::2] = np.minimum(cursors.at, cursors.end)
    offsets[-1] = offsets[-2] if len(start) else 0
    buffers = [None, pa.py_buffer(offsets), cursors.memory.arrow]
    return pa.Array.from_buffers(pa.binary(), 2 * len(start), buffers, 0)


def _taken(slots: pa.Array, spread: Spread | None) -> pa.Array:
    even = _even(len(slots) // 2) if spread is None else spread.places(2)
    return pc.take(slots, even, boundscheck=False)


@lru_cache(maxsize=8)
def _even(count: int) -> pa.Array:
    return pa.array(np.arange(0, 2 * count, 2, dtype=np.int32))


def _are_texts(column: pa.Array) -> bool:
    try:
        column.view(pa.string()).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _not_text(column: pa.Array) -> np.ndarray:
    """Rows of values that are not UTF-8. Arrow checks many at once, but does not say which one failed."""
    wrong: list[int] = []
    parts = [] if _are_texts(column) else [(0, len(column))]
    while parts:  # each of them has one at least
        start, end = parts.pop()
        if end - start <= _FEW:
            wrong += [row for row in range(start, end) if not _is_text(column[row].as_py() or b"")]
            continue
        middle = (start + end) // 2
        first_half = _are_texts(column.slice(start, middle - start))
        if first_half or not _are_texts(column.slice(middle, end - middle)):
            parts.append((middle, end))
        if not first_half:
            parts.append((start, middle))
    return np.array(wrong, np.int64)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _blanked(column: pa.Array, data: np.ndarray, rows: np.ndarray) -> pa.Array:
    """As text, with spaces for the values of bad rows."""
    validity, offsets, _ = column.buffers()
    begin, blank = np.frombuffer(offsets, np.int32), data.copy()
    for row in rows:
        blank[begin[row] : begin[row + 1]] = ord(" ")
    return pa.Array.from_buffers(pa.string(), len(column), [validity, offsets, pa.py_buffer(blank)])

"""Columns of many values per row: arrays and maps.

Where an item stands is known only after the one before it, so the items are found step by step, the
n-th item of every row at once, over ever fewer rows; then all of them are read as one flat column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cdc_lakehouse.avro.cursors import Cursors
from cdc_lakehouse.avro.leaves import Column
from cdc_lakehouse.avro.nested import RecordColumn
from cdc_lakehouse.avro.output import count_output
from cdc_lakehouse.avro.spread import Spread, spread_out
from cdc_lakehouse.avro.varints import read_longs
from cdc_lakehouse.avro.widths import BYTES_PER_VALUE, Share

_SHORT_STEPS, _ENOUGH_ROWS = 16, 200
"""After that many items a step must serve that many rows, or reading those rows one by one is faster:
they fail here and the caller reads them again. One record can ask for a million steps."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Of a list of wide items (`widths`)."""

    width: int
    share: Share


@dataclass(frozen=True, slots=True)
class _Items:
    """All items of a column, row by row."""

    row: np.ndarray
    cursors: Cursors
    offsets: pa.Array


class ArrayColumn:
    def __init__(self, item: Column, limit: Limit | None = None, *, width: int = 1) -> None:
        """`width` is the number of values of an item."""
        self._item, self._limit, self._width = item, limit, width
        self.type = pa.list_(item.type)

    def read(self, cursors: Cursors, spread: Spread | None = None) -> pa.Array:
        items = _found(cursors, self._item, self._limit)
        count_output(BYTES_PER_VALUE * self._width * len(items.row))
        values = self._item.read(items.cursors)
        _fail_rows_of_bad_items(cursors, items)
        return spread_out(pa.ListArray.from_arrays(items.offsets, values, type=self.type), spread)

    def skip(self, cursors: Cursors) -> None:
        _found(cursors, self._item, self._limit)


class MapColumn:
    def __init__(self, key: Column, value: Column, limit: Limit | None = None, *, width: int = 1) -> None:
        """`width` is the number of values of an entry beside its key."""
        self._limit, self._width = limit, width
        self._entry = RecordColumn([("key", key, True), ("value", value, True)])
        self.type = pa.map_(key.type, value.type)

    def read(self, cursors: Cursors, spread: Spread | None = None) -> pa.Array:
        items = _found(cursors, self._entry, self._limit)
        count_output(BYTES_PER_VALUE * self._width * len(items.row))
        entries = self._entry.read(items.cursors)
        keys, values = entries.field(0), entries.field(1)
        _fail_rows_of_bad_items(cursors, items)
        cursors.fail(_rows_with_a_key_twice(items.row, keys))
        return spread_out(pa.MapArray.from_arrays(items.offsets, keys, values, type=self.type), spread)

    def skip(self, cursors: Cursors) -> None:
        _found(cursors, self._entry, self._limit)


def _found(cursors: Cursors, item: Column, limit: Limit | None) -> _Items:
    """Moves the cursors behind the last block."""
    begin = cursors.at.copy()
    rows = np.arange(len(cursors))
    part, left = cursors.only(rows), np.zeros(len(cursors), np.int64)
    steps: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    while True:
        going = _next_block(part, left) & (part.at <= part.end)
        if len(steps) >= _SHORT_STEPS and np.count_nonzero(going) < _ENOUGH_ROWS:
            part.fail(going)
            going[:] = False
        if not going.all():
            cursors.rejoin(rows, part)
            rows, part, left = rows[going], part.only(going), left[going]
        if len(rows) == 0:
            items = _in_row_order(cursors, steps)
            return items if limit is None else _limited(items, cursors, begin, limit)
        start = part.at.copy()
        item.skip(part)
        left -= 1
        steps.append((rows, start, np.minimum(part.at, part.end)))


def _limited(items: _Items, cursors: Cursors, begin: np.ndarray, limit: Limit) -> _Items:
    """Without those of rows that ask for too much; the reader of single rows has the last word on them."""
    count = np.bincount(items.row, minlength=len(cursors))
    wild = limit.share.exceeded(count * limit.width, cursors.at - begin)
    if not wild.any():
        return items
    cursors.fail(wild)
    kept = ~wild[items.row]
    start, end = items.cursors.at[kept], items.cursors.end[kept]
    count[wild] = 0
    offsets = np.zeros(len(cursors) + 1, np.int32)
    np.cumsum(count, out=offsets[1:])
    return _Items(items.row[kept], Cursors(cursors.memory, start, end), pa.array(offsets))


def _next_block(cursors: Cursors, left: np.ndarray) -> np.ndarray:
    """Reads the header of a block where nothing is `left` of the last one; False where the list ends."""
    rows = np.flatnonzero(left == 0)
    if len(rows):
        part = cursors.only(rows)
        left[rows] = _block_size(part)
        cursors.rejoin(rows, part)
    going: np.ndarray = np.not_equal(left, 0)
    return going


def _block_size(cursors: Cursors) -> np.ndarray:
    """Items; a negative number is followed by the block's size in bytes, which nothing here needs."""
    count = read_longs(cursors)
    sized = np.flatnonzero(count < 0)
    if len(sized):
        part = cursors.only(sized)
        read_longs(part)
        cursors.rejoin(sized, part)
        np.absolute(count, out=count)  # -2**63 stays negative
    # Every item takes a byte at least, so the bytes that are left bound the items.
    wild = (count < 0) | (count > cursors.end - cursors.at)
    if wild.any():
        cursors.fail(wild)
        count[wild] = 0
    return count


def _in_row_order(cursors: Cursors, steps: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> _Items:
    nothing = np.zeros(0, np.int64)
    row, start, end = (np.concatenate(parts) for parts in zip((nothing,) * 3, *steps, strict=True))
    order = np.argsort(row, kind="stable")
    row = row[order]
    offsets = np.zeros(len(cursors) + 1, np.int32)
    np.cumsum(np.bincount(row, minlength=len(cursors)), out=offsets[1:])
    return _Items(row, Cursors(cursors.memory, start[order], end[order]), pa.array(offsets))


def _fail_rows_of_bad_items(cursors: Cursors, items: _Items) -> None:
    sound = items.cursors.sound()
    if not sound.all():
        cursors.fail(np.unique(items.row[~sound]))


def _rows_with_a_key_twice(row: np.ndarray, keys: pa.Array) -> np.ndarray:
    """Which value counts is for the reader of single rows to say."""
    if len(row) == 0 or row[-1] - row[0] + 1 == len(row) == len(np.unique(row)):
        return row[:0]
    codes = keys.dictionary_encode()
    pairs = np.sort(row * (len(codes.dictionary) + 1) + codes.indices.to_numpy())
    return np.unique(pairs[:-1][pairs[1:] == pairs[:-1]] // (len(codes.dictionary) + 1))

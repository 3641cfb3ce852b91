"""Positions of a whole batch: the columnar twin of `position`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.debezium.conversions import numbers_of, numbers_of_offsets, present
from cdc_lakehouse.debezium.operations import Operation
from cdc_lakehouse.debezium.position import (
    FULL_SNAPSHOT,
    INCREMENTAL,
    MYSQL_CONNECTORS,
    binlog_number,
    sequence_pair,
)

_MAX_TEXT = 7 + 2 * 18
"""`["a","b"]` of two numbers of up to 18 digits, which no 64 bits overflow."""


def position_columns(
    source: pa.StructArray, op: pa.Array, total_order: pa.Array, offset: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """Values in the order phase, commit, streamed, row, order_in_tx, kind, and a mask of the known ones."""
    count = len(op)
    connector, snapshot = source.field("connector"), source.field("snapshot")
    full = _one_of(snapshot, sorted(FULL_SNAPSHOT))
    known = present(source) & present(op)
    postgresql, mysql = _one_of(connector, ["postgresql"]), _one_of(connector, sorted(MYSQL_CONNECTORS))
    commit, row = np.zeros(count, np.int64), offset.astype(np.int64)
    order = _or_zero(total_order)
    if postgresql.any():
        known &= _postgresql(source, postgresql, commit, row)
    if mysql.any():
        known &= _mysql(source, mysql, commit, row)
        order = np.where(mysql, _or_zero(source.field("row")), order)
    phase = (~full).astype(np.int64)
    streamed = (~(full | _one_of(snapshot, [INCREMENTAL]))).astype(np.int64)
    kind = (~_one_of(op, [str(Operation.DELETE)])).astype(np.int64)
    return [phase, commit, streamed, row, order, kind], known


def _one_of(column: pa.Array, texts: list[str]) -> np.ndarray:
    found: np.ndarray = np.zeros(len(column), bool)
    if column.null_count < len(column):
        found = pc.is_in(column, value_set=pa.array(texts, pa.string())).to_numpy(zero_copy_only=False)
    return found


def _or_zero(column: pa.Array) -> np.ndarray:
    found = numbers_of(column, np.int64)
    return found if column.null_count == 0 else np.where(present(column), found, 0)


def _postgresql(source: pa.StructArray, mine: np.ndarray, commit: np.ndarray, row: np.ndarray) -> np.ndarray:
    first, own, has_own, readable = _sequences(source.field("sequence"), mine)
    has_lsn = present(source.field("lsn"))
    commit[mine] = first[mine]
    row[mine] = np.where(has_lsn, _or_zero(source.field("lsn")), own)[mine]
    return ~mine | (readable & (has_lsn | has_own))


def _mysql(source: pa.StructArray, mine: np.ndarray, commit: np.ndarray, row: np.ndarray) -> np.ndarray:
    files = source.field("file").dictionary_encode()
    numbers = [binlog_number(name) for name in files.dictionary.to_pylist()] or [None]
    codes = files.indices.fill_null(0).to_numpy()
    commit[mine] = np.array([number or 0 for number in numbers], np.int64)[codes][mine]
    row[mine] = _or_zero(source.field("pos"))[mine]
    named = np.array([number is not None for number in numbers])[codes] & present(source.field("file"))
    return ~mine | (named & present(source.field("pos")))


def _sequences(column: pa.Array, mine: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """First number or 0, second number or 0, whether there is a second, whether the text is readable."""
    count = len(column)
    first, second = np.zeros(count, np.int64), np.zeros(count, np.int64)
    has_second, readable = np.zeros(count, bool), np.ones(count, bool)
    there = present(column)
    if not (there & mine).any():
        return first, second, has_second, readable
    texts = _Texts(column)
    usual = _two_numbers(texts, first, second)
    has_second |= usual
    for place in np.flatnonzero(there & mine & ~usual):
        pair = sequence_pair(column[int(place)].as_py())
        readable[place] = pair is not None
        if pair is not None:
            first[place], second[place], has_second[place] = pair[0] or 0, pair[1] or 0, pair[1] is not None
    return first, second, has_second, readable


class _Texts:
    """Bytes of texts, with room around them."""

    def __init__(self, column: pa.Array) -> None:
        offsets = numbers_of_offsets(column).astype(np.int64)
        data = np.frombuffer(column.buffers()[2] or b"", np.uint8)
        self.bytes = np.zeros(len(data) + 2 * _MAX_TEXT, np.uint8)
        self.bytes[_MAX_TEXT : _MAX_TEXT + len(data)] = data
        self.start = offsets[:-1] + _MAX_TEXT
        self.size = np.diff(offsets)

    def at(self, places: np.ndarray) -> np.ndarray:
        return self.bytes.take(places)

    def matches(self, places: np.ndarray, text: bytes) -> np.ndarray:
        found = np.ones(len(places), bool)
        for ahead, byte in enumerate(text):
            found &= self.at(places + ahead) == byte
        return found


def _two_numbers(texts: _Texts, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Reads `["123","456"]` and `[null,"456"]` where both numbers have as many digits, or the second is
    one longer, which is nearly always; a mask of the rows that were read."""
    done = np.zeros(len(first), bool)
    sized = (texts.size >= 9) & (texts.size <= _MAX_TEXT)
    for shape in (_pair_shape, _null_shape):
        digits, head = shape(texts)
        rows = np.flatnonzero(sized & ~done & (head > 0))
        if not len(rows):
            continue
        _read(texts, rows, digits[rows], head[rows], first, second, done)
    return done


def _pair_shape(texts: _Texts) -> tuple[np.ndarray, np.ndarray]:
    digits = (texts.size - 7) // 2
    return digits, digits + 5


def _null_shape(texts: _Texts) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros_like(texts.size), np.full_like(texts.size, 7)


def _read(
    texts: _Texts,
    rows: np.ndarray,
    digits: np.ndarray,
    head: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    done: np.ndarray,
) -> None:
    """`digits` of the first number, 0 for null; `head` bytes before the second."""
    part = _Rows(texts, rows)
    start, size = part.start, part.size
    fine = part.matches(start + size - 2, b'"]')
    if digits.any():
        fine &= part.matches(start, b'["') & part.matches(start + head - 3, b'","')
    else:
        fine &= part.matches(start, b'[null,"')
    one, one_fine = part.number(start + 2, digits)
    two, two_fine = part.number(start + head, size - head - 2)
    fine &= two_fine & (size - head > 2) & (size - head <= 20)
    if digits.any():
        fine &= one_fine & (digits > 0)
    good = rows[fine]
    first[good], second[good], done[good] = one[fine], two[fine], True


class _Rows(_Texts):
    """Some of the texts."""

    def __init__(self, texts: _Texts, rows: np.ndarray) -> None:
        self.bytes, self.start, self.size = texts.bytes, texts.start[rows], texts.size[rows]

    def number(self, start: np.ndarray, digits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Decimal digits read from `start` on, all rows digit by digit; a mask of those that are digits."""
        value, fine = np.zeros(len(start), np.int64), np.ones(len(start), bool)
        for place in range(int(min(digits.max(), 18)) if len(digits) else 0):
            inside = place < digits
            digit = self.at(start + place).astype(np.int64) - ord("0")
            fine &= ~inside | ((digit >= 0) & (digit <= 9))
            value = np.where(inside, value * 10 + digit, value)
        return value, fine & (digits <= 18)

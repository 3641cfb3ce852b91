"""Texts such as `["26002768","26002808"]` as two numbers, a whole column at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cdc_lakehouse.avro.memory import Memory
from cdc_lakehouse.avro.typed.columns import numbers_of_offsets

_LEAST, _MOST = len('["1","2"]'), len('["",""]') + 2 * 16
_NULL = len('[null,"')
_ZEROS = 0x3030303030303030
_TO_HEX_LETTER = 0x0606060606060606
_UPPER = 0xF0F0F0F0F0F0F0F0
_JOINS = (
    (np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(10 << 8 | 1), np.uint64(8)),
    (np.uint64(0x00FF00FF00FF00FF), np.uint64(100 << 16 | 1), np.uint64(16)),
    (np.uint64(0x0000FFFF0000FFFF), np.uint64(10_000 << 32 | 1), np.uint64(32)),
)
"""Eight digits, the first one lowest, in one word: joined to pairs, fours and one number."""


def read_pairs(column: pa.Array, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Reads the usual texts, a null as 0, and gives a mask of the rows that it has read.

    Usual are pairs of numbers about as long as each other, of up to 16 digits, and a null before one.
    """
    done = _read_alike(column, first, second)
    if done is not None:
        return done
    texts = _Texts.of(column)
    size = texts.end - texts.start
    pair = size - len('["",""]')
    done = np.zeros(len(column), bool)
    for digits in (pair >> 1, pair - (pair >> 1), np.zeros_like(size)):
        rows = np.flatnonzero(~done & (size >= _LEAST) & (size <= _MOST))
        part = texts if len(rows) == len(column) else texts.only(rows)
        one, two, fine = part.numbers(digits[rows])
        good = rows[fine]
        first[good], second[good], done[good] = one[fine], two[fine], True
        if done.all():
            break
    return done


def _read_alike(column: pa.Array, first: np.ndarray, second: np.ndarray) -> np.ndarray | None:
    """Texts that are all of one shape, as nearly always: their digits stand in columns of one table.

    None when they are not, or are none of the usual ones.
    """
    offsets = numbers_of_offsets(column)
    count = len(column)
    size = int(offsets[1] - offsets[0])
    if column.null_count or not _LEAST <= size <= _MOST or (np.diff(offsets) != size).any():
        return None
    table = np.frombuffer(column.buffers()[2], np.uint8)[offsets[0] : offsets[-1]].reshape(count, size)
    middle = table[0].tobytes().find(b'","')
    digits = (range(2, middle), range(middle + 3, size - 2))
    if middle < 0 or not all(1 <= len(each) <= 16 for each in digits):
        return None
    for text, place in ((b'["', 0), (b'","', middle), (b'"]', size - 2)):
        for ahead, byte in enumerate(text):
            if (table[:, place + ahead] != byte).any():
                return None
    padded = np.concatenate([np.zeros(8, np.uint8), table.reshape(-1)])
    for places, numbers in zip(digits, (first, second), strict=True):
        low = min(len(places), 8)
        value, fine = _of_digits(_words_before(padded, places.stop, low, table))
        if len(places) > 8:
            upper, upper_fine = _of_digits(_words_before(padded, places.stop - 8, len(places) - 8, table))
            value += upper * 100_000_000
            fine &= upper_fine
        if not fine.all():
            return None
        numbers[:] = value
    return np.ones(count, bool)


def _words_before(padded: np.ndarray, end: int, digits: int, table: np.ndarray) -> np.ndarray:
    """So many digits that end at this place of every row, with zeros before them; 8 bytes in front."""
    count, size = table.shape
    word = np.ndarray((count,), "<u8", padded, offset=end, strides=(size,)).copy()
    foreign = (1 << 8 * (8 - digits)) - 1
    word &= np.uint64(2**64 - 1 - foreign)
    word |= np.uint64(_ZEROS & foreign)
    return word


def _of_digits(word: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The number that eight digits are, and whether they are digits."""
    fine = (word & np.uint64(_UPPER)) == np.uint64(_ZEROS)
    fine &= ((word + np.uint64(_TO_HEX_LETTER)) & np.uint64(_UPPER)) == np.uint64(_ZEROS)
    for mask, factor, shift in _JOINS:
        word &= mask
        word *= factor
        word >>= shift
    return word.view(np.int64), fine


@dataclass(frozen=True, slots=True)
class _Texts:
    memory: Memory
    start: np.ndarray
    end: np.ndarray

    @classmethod
    def of(cls, column: pa.Array) -> _Texts:
        offsets = numbers_of_offsets(column).astype(np.int64)
        return cls(Memory(column.buffers()[2] or pa.py_buffer(b"")), offsets[:-1], offsets[1:])

    def only(self, rows: np.ndarray) -> _Texts:
        return _Texts(self.memory, self.start[rows], self.end[rows])

    def numbers(self, digits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of texts whose first number has so many digits, 0 for a null: both, and which texts are so."""
        fine = self._match(self.end - 2, b'"]')
        if not digits.any():
            fine &= self._match(self.start, b'[null,"')
            head, one = np.full_like(digits, _NULL), np.zeros_like(digits)
        else:
            head = digits + len('["","')
            fine &= self._match(self.start, b'["') & self._match(self.start + digits + 2, b'","')
            one, one_fine = self._number(self.start + 2, digits)
            fine &= one_fine
        begin = self.start + head
        two, two_fine = self._number(begin, self.end - 2 - begin)
        return one, two, fine & two_fine

    def _match(self, places: np.ndarray, text: bytes) -> np.ndarray:
        found = np.ones(len(places), bool)
        for ahead, byte in enumerate(text):
            found &= self.memory.bytes.take(places + ahead, mode="clip") == byte
        return found

    def _number(self, begin: np.ndarray, digits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One to sixteen digits, and whether that is what stands there."""
        fine = (digits >= 1) & (digits <= 16)
        digits = np.clip(digits, 1, 16)
        upper = np.maximum(digits - 8, 0)
        value, lower_fine = self._eight(begin + upper, digits - upper)
        fine &= lower_fine
        if upper.any():
            high, high_fine = self._eight(begin, upper)
            value = value + high * 100_000_000
            fine &= high_fine
        return value, fine

    def _eight(self, begin: np.ndarray, digits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Up to eight digits: moved to the end of the word, zeros before them."""
        begin = np.minimum(begin, len(self.memory.words) - 1)
        empty = ((8 - digits) * 8).astype(np.uint64)
        # A shift by all 64 bits, for no digits at all, is two shifts: one alone is not defined.
        half = empty >> np.uint64(1)
        word = self.memory.words[begin].view("<u8") << half << (empty - half)
        word |= np.uint64(_ZEROS) & ~(np.uint64(2**64 - 1) << half << (empty - half))
        return _of_digits(word)

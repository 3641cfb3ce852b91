"""Avro's variable-length numbers, a whole column at once."""

from __future__ import annotations

import numpy as np

from cdc_lakehouse.avro.cursors import Cursors

_WORD = 8
_CONTINUES = np.uint64(0x8080808080808080)
_SEVEN = np.uint64(0x7F7F7F7F7F7F7F7F)
_FOLDS = (
    (np.uint64(0x007F007F007F007F), np.uint64(0x7F007F007F007F00), np.uint64(1)),
    (np.uint64(0x00003FFF00003FFF), np.uint64(0x3FFF00003FFF0000), np.uint64(2)),
    (np.uint64(0x000000000FFFFFFF), np.uint64(0x0FFFFFFF00000000), np.uint64(4)),
)
"""Groups of 7 bits in lanes of 8 -> 14 in 16 -> 28 in 32 -> 56 in 64."""
_ONE = np.uint64(1)
_UP_TO_END = [np.uint64(0x8080808080808080 & ((1 << 8 * size) - 1)) for size in range(9)]
_BELOW_END = [np.uint64(0x7F7F7F7F7F7F7F7F & ((1 << 8 * size) - 1)) for size in range(9)]
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1


def read_longs(cursors: Cursors) -> np.ndarray:
    """The number at each cursor; more than 64 bits fail the row."""
    if len(cursors) == 0:
        return np.zeros(0, np.int64)
    if cursors.first_byte() < 0x80:
        first = cursors.byte()
        if first.max() < 0x80:
            cursors.move(1)
            return _unzigzagged(first.astype(np.uint64))
    word = cursors.word()
    size = _same_size(cursors, word)
    if size:
        word &= _BELOW_END[size]
        _fold(word, size)
        cursors.move(size)
        return _unzigzagged(word)
    below_end, sizes = _extent(word)
    word &= below_end
    _fold(word)
    _finish_long_ones(cursors, word, sizes)
    cursors.move(sizes)
    return _unzigzagged(word)


def read_ints(cursors: Cursors) -> np.ndarray:
    """Like `read_longs`, but more than 32 bits fail the row."""
    values = read_longs(cursors)
    if len(values) and (values.max() > _INT_MAX or values.min() < _INT_MIN):
        cursors.fail((values > _INT_MAX) | (values < _INT_MIN))
    return values.astype(np.int32)


def skip_longs(cursors: Cursors) -> None:
    """As strict as reading."""
    if len(cursors) == 0:
        return
    if cursors.first_byte() < 0x80 and cursors.byte().max() < 0x80:
        cursors.move(1)
        return
    word = cursors.word()
    size = _same_size(cursors, word)
    if not size:
        _, sizes = _extent(word)
        _finish_long_ones(cursors, word, sizes)
        cursors.move(sizes)
        return
    cursors.move(size)


def _same_size(cursors: Cursors, word: np.ndarray) -> int:
    """The number of bytes where it is the same in every row that is not lost, as with times; else 0."""
    ends = ~int(word[0]) & int(_CONTINUES)
    size = (ends & -ends).bit_length() // 8
    same = word & _UP_TO_END[size] == _UP_TO_END[max(size - 1, 0)]
    return size if same.all() or (same | cursors.lost()).all() else 0


def _extent(word: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bits below the mark of the last byte, and the number of bytes; 9 when the end is not in the word."""
    ends = ~word
    ends &= _CONTINUES
    lowest = np.negative(ends)
    lowest &= ends
    lowest -= _ONE  # no end at all: zero becomes all ones
    size = np.bitwise_count(lowest)
    size >>= np.uint8(3)
    return lowest, size.astype(np.int64) + 1


def _fold(word: np.ndarray, size: int = _WORD) -> None:
    word &= _SEVEN
    for low, high, shift in _FOLDS[: (size - 1).bit_length()]:
        upper = word & high
        upper >>= shift
        word &= low
        word |= upper


def _finish_long_ones(cursors: Cursors, word: np.ndarray, size: np.ndarray) -> None:
    """The ninth and the tenth byte, where there are any: 63 bits and then one more."""
    if size.max() <= _WORD:
        return
    rows = np.flatnonzero(size > _WORD)
    at = cursors.at[rows] + _WORD
    ninth, tenth = cursors.memory.bytes.take(at), cursors.memory.bytes.take(at + 1)
    ten = ninth >= 0x80
    tenth[~ten] = 0
    word[rows] |= (ninth & 0x7F).astype(np.uint64) << np.uint64(56) | tenth.astype(np.uint64) << np.uint64(63)
    size[rows] += ten
    if tenth.max() > 1:
        cursors.fail(rows[tenth > 1])


def _unzigzagged(word: np.ndarray) -> np.ndarray:
    sign = word & _ONE
    np.negative(sign, out=sign)
    word >>= _ONE
    word ^= sign
    return word.view(np.int64)

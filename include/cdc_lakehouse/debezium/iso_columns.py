"""Columns of ISO-8601 texts into numbers: the columnar twins of `iso`.

Texts of the usual shape are read at once; others (infinity, far years, offsets) go through `iso`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.avro.typed.columns import Refused, numbers_of_offsets, present
from cdc_lakehouse.avro.typed.conversions import NTZ, UTC, Cast, Each
from cdc_lakehouse.avro.typed.values import Convert
from cdc_lakehouse.debezium import iso

_MOMENT_SIZES = np.array([20, *range(22, 28)])
"""`2024-02-29T23:59:59Z`, and the same with up to six digits of a fraction."""
_TIME_SIZES = np.array([9, *range(11, 17)])
_DATE_SIZE = 11
_PLACES = (10, 1)
_MICROS = np.array([36_000_000_000, 3_600_000_000, 600_000_000, 60_000_000, 10_000_000, 1_000_000])


@dataclass(frozen=True, slots=True)
class _Texts:
    """The bytes of a column of text, and where its values lie."""

    data: np.ndarray
    start: np.ndarray
    size: np.ndarray

    @classmethod
    def of(cls, column: pa.Array) -> _Texts:
        offsets = numbers_of_offsets(column).astype(np.int64)
        data = np.frombuffer(column.buffers()[2] or b"", np.uint8)
        return cls(np.append(data, np.uint8(0)), offsets[:-1], np.diff(offsets))

    def byte(self, place: int) -> np.ndarray:
        """Of every value; whatever where it is shorter."""
        found: np.ndarray = self.data.take(self.start + place, mode="clip")
        return found

    def last(self) -> np.ndarray:
        found: np.ndarray = self.data.take(self.start + self.size - 1, mode="clip")
        return found

    def digits(self, *places: int) -> np.ndarray:
        """One row per place. What is no digit is 10 or more."""
        return np.stack([self.byte(place) - np.uint8(ord("0")) for place in places]).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Moments:
    """Twin of `iso.zoned_to_micros` and of `iso.local_to_micros`; Arrow's parser reads the usual ones."""

    type: pa.DataType
    convert: Convert

    def __call__(self, column: pa.Array) -> tuple[pa.Array, Refused]:
        texts = _Texts.of(column)
        usual = np.isin(texts.size, _MOMENT_SIZES) & (texts.byte(10) == ord("T")) & (texts.last() == ord("Z"))
        rest = ~usual & present(column)
        likely = pc.if_else(pa.array(rest), pa.scalar(None, column.type), column) if rest.any() else column
        final, refused = Cast(UTC, self.convert)(likely)
        return _completed(final.cast(self.type), refused, column, rest, self.convert)


def dates(column: pa.Array) -> tuple[pa.Array, Refused]:
    """Twin of `iso.date_to_days`."""
    texts = _Texts.of(column)
    digits = texts.digits(0, 1, 2, 3, 5, 6, 8, 9)
    usual = (texts.size == _DATE_SIZE) & (digits < 10).all(axis=0) & (texts.last() == ord("Z"))
    usual &= (texts.byte(4) == ord("-")) & (texts.byte(7) == ord("-"))
    year = np.array([1000, 100, 10, 1]) @ digits[:4]
    month, day = _PLACES @ digits[4:6], _PLACES @ digits[6:8]
    first = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = first.astype("datetime64[D]").astype(np.int64) + day - 1
    next_first = (first + 1).astype("datetime64[D]").astype(np.int64)
    usual &= (year > 0) & (month > 0) & (month < 13) & (day > 0) & (days < next_first)
    return _read(column, usual, days.astype(np.int32), pa.date32(), iso.date_to_days)


def times(column: pa.Array) -> tuple[pa.Array, Refused]:
    """Twin of `iso.time_to_micros`."""
    texts = _Texts.of(column)
    clock, fraction = texts.digits(0, 1, 3, 4, 6, 7), texts.digits(9, 10, 11, 12, 13, 14)
    behind = np.arange(9, 15)[:, None] >= texts.size - 1
    fraction[behind] = 0
    usual = np.isin(texts.size, _TIME_SIZES) & (clock < 10).all(axis=0) & (fraction < 10).all(axis=0)
    usual &= (texts.byte(2) == ord(":")) & (texts.byte(5) == ord(":")) & (texts.last() == ord("Z"))
    usual &= (texts.size == _TIME_SIZES[0]) | (texts.byte(8) == ord("."))
    usual &= (_PLACES @ clock[:2] < 24) & (clock[2] < 6) & (clock[4] < 6)
    micros = _MICROS @ clock + 10 ** np.arange(5, -1, -1) @ fraction
    return _read(column, usual, micros, pa.int64(), iso.time_to_micros)


def _read(
    column: pa.Array, usual: np.ndarray, numbers: np.ndarray, type_: pa.DataType, convert: Convert
) -> tuple[pa.Array, Refused]:
    there = present(column)
    rest = there & ~usual
    storage = pa.int32() if type_ == pa.date32() else type_
    final = pa.array(numbers, storage, mask=~(there & usual)).view(type_)
    return _completed(final, None, column, rest, convert)


def _completed(
    final: pa.Array, refused: Refused, column: pa.Array, rest: np.ndarray, convert: Convert
) -> tuple[pa.Array, Refused]:
    """With the values of `rest`, one by one, in their places."""
    if not rest.any():
        return final, refused
    rows = np.flatnonzero(rest)
    single, wrong = Each(final.type, convert)(column.take(pa.array(rows)))
    whole = pc.replace_with_mask(final, pa.array(rest), single)
    every = np.zeros(len(column), bool) if refused is None else refused
    if wrong is not None:
        every[rows[wrong]] = True
    return whole, every if every.any() else None


zoned = Moments(UTC, iso.zoned_to_micros)
local = Moments(NTZ, iso.local_to_micros)

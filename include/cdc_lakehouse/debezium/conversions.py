"""Raw Avro columns into final ones: the columnar twins of `values` (`cdc-semantics` §7).

A twin gives the column of the final type and, where there are any, a mask of the values that `values`
would refuse. Twins are values: equal ones let records of different schema ids share one group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.avro.faults import RecordFault
from cdc_lakehouse.debezium import values

Refused = np.ndarray | None
ConvertColumn = Callable[[pa.Array], tuple[pa.Array, Refused]]

_MAX, _MIN = 2**63 - 1, -(2**63)
_FEW = 16
"""So many values are converted one by one where the whole column cannot be."""
_ZONED_SIZES = np.array([20, *range(22, 28)])
"""`2024-02-29T23:59:59Z`, and the same with up to six digits of a fraction."""


def numbers_of(column: pa.Array, dtype: Any) -> np.ndarray:
    """The values as they lie in memory; whatever at nulls."""
    whole = np.frombuffer(column.buffers()[1] or b"", dtype)
    return whole[column.offset : column.offset + len(column)]


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


def _refused(column: pa.Array, wrong: np.ndarray) -> Refused:
    found: np.ndarray = wrong & present(column)
    return found if found.any() else None


def days(column: pa.Array) -> tuple[pa.Array, Refused]:
    found = numbers_of(column, np.int32)
    wrong = (found < values.FIRST_DAY) | (found > values.LAST_DAY)
    refused = _refused(column, wrong)
    return with_numbers(column, found if refused is None else np.where(wrong, 0, found), pa.date32()), refused


def small(column: pa.Array) -> tuple[pa.Array, Refused]:
    found = numbers_of(column, np.int32)
    fitting = found.astype(np.int16)
    return with_numbers(column, fitting, pa.int16()), _refused(column, fitting != found)


def time_millis(column: pa.Array) -> tuple[pa.Array, Refused]:
    return with_numbers(column, numbers_of(column, np.int32).astype(np.int64) * 1000, pa.int64()), None


def time_nanos(column: pa.Array) -> tuple[pa.Array, Refused]:
    return with_numbers(column, numbers_of(column, np.int64) // 1000, pa.int64()), None


@dataclass(frozen=True, slots=True)
class Micros:
    """Twin of `values.scaled_micros`."""

    numerator: int = 1
    denominator: int = 1

    def __call__(self, column: pa.Array) -> tuple[pa.Array, Refused]:
        found = numbers_of(column, np.int64)
        if self.denominator == 1:
            low, high = values.MINUS_INFINITY // self.numerator, values.INFINITY // self.numerator
        else:
            low, high = _MIN, _MAX
        wrong = (found <= low) | (found >= high)
        refused = _refused(column, wrong)
        if refused is not None:
            found = np.where(wrong, 0, found)
        if self.denominator != 1:
            found = found // self.denominator
        elif self.numerator != 1:
            found = found * self.numerator
        return with_numbers(column, found, pa.timestamp("us")), refused


@dataclass(frozen=True, slots=True)
class Each:
    """No twin: one value at a time."""

    type: pa.DataType
    convert: Callable[[Any], Any]

    def __call__(self, column: pa.Array) -> tuple[pa.Array, Refused]:
        final, refused = [], np.zeros(len(column), bool)
        for place, raw in enumerate(column.to_pylist()):
            try:
                final.append(None if raw is None else self.convert(raw))
            except RecordFault:
                final.append(None)
                refused[place] = True
        return pa.array(final, self.type), refused if refused.any() else None


@dataclass(frozen=True, slots=True)
class Cast:
    """Arrow's cast where it is exact; values that it refuses get the last word of `convert`."""

    type: pa.DataType
    convert: Callable[[Any], Any]

    def __call__(self, column: pa.Array) -> tuple[pa.Array, Refused]:
        try:
            return column.cast(self.type), None
        except pa.ArrowInvalid:
            if len(column) <= _FEW:
                return Each(self.type, self.convert)(column)
        middle = len(column) // 2
        halves = [self(column.slice(0, middle)), self(column.slice(middle))]
        refused = [np.zeros(len(final), bool) if refused is None else refused for final, refused in halves]
        return pa.concat_arrays([final for final, _ in halves]), np.concatenate(refused)


def zoned(column: pa.Array) -> tuple[pa.Array, Refused]:
    """Texts of the usual shape by Arrow's parser, others (infinity, far years, offsets) one by one."""
    type_ = pa.timestamp("us", tz="UTC")
    offsets = numbers_of_offsets(column)
    size = np.diff(offsets)
    data = np.frombuffer(column.buffers()[2] or bytes(1), np.uint8)
    usual = np.isin(size, _ZONED_SIZES)
    at = np.where(usual, offsets[:-1], 0)
    last = np.where(usual, offsets[1:] - 1, 0)
    if len(data) > 10:
        usual &= (data.take(np.minimum(at + 10, len(data) - 1)) == ord("T")) & (data.take(last) == ord("Z"))
    odd = ~usual & present(column)
    cast = Cast(type_, values.zoned_to_micros)
    if not odd.any():
        return cast(column)
    final, refused = cast(pc.if_else(pa.array(odd), pa.scalar(None, column.type), column))
    rows = np.flatnonzero(odd)
    single, wrong = Each(type_, values.zoned_to_micros)(column.take(pa.array(rows)))
    merged = pc.replace_with_mask(final, pa.array(odd), single)
    all_refused = np.zeros(len(column), bool) if refused is None else refused
    if wrong is not None:
        all_refused[rows[wrong]] = True
    return merged, all_refused if all_refused.any() else None


def numbers_of_offsets(column: pa.Array) -> np.ndarray:
    whole = np.frombuffer(column.buffers()[1] or bytes(4), np.int32)
    return whole[column.offset : column.offset + len(column) + 1]


def same_text(column: pa.Array) -> str | None:
    """The text that all values are, as with most of `source`; None also where there is a null."""
    if column.null_count or not len(column):
        return None
    offsets = numbers_of_offsets(column)
    size = int(offsets[1] - offsets[0])
    if int(offsets[-1] - offsets[0]) != size * len(column) or (size and (np.diff(offsets) != size).any()):
        return None
    data = np.frombuffer(column.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    # Each text against the one before it: two long pieces of memory.
    return str(column[0]) if (data[size:] == data[: len(data) - size]).all() else None


@dataclass(frozen=True, slots=True)
class Items:
    """A twin for the items of arrays: one refused item refuses its row."""

    item: ConvertColumn

    def __call__(self, column: pa.Array) -> tuple[pa.Array, Refused]:
        lists = column if column.offset == 0 else pa.concat_arrays([column])
        final, refused = self.item(lists.values)
        validity = lists.buffers()[0] if lists.null_count else None
        type_ = pa.list_(final.type)
        whole = pa.Array.from_buffers(
            type_, len(lists), [validity, lists.buffers()[1]], lists.null_count, children=[final]
        )
        if refused is None:
            return whole, None
        refused_before = np.concatenate([[0], np.cumsum(refused)])
        return whole, _refused(column, np.diff(refused_before[numbers_of_offsets(lists)]) > 0)


@dataclass(frozen=True, slots=True)
class Flag:
    """Twin of the fit of a number to a boolean column."""

    def __call__(self, column: pa.Array) -> tuple[pa.Array, Refused]:
        found = numbers_of(column, np.int16)
        return column.cast(pa.bool_()), _refused(column, (found < 0) | (found > 1))


@dataclass(frozen=True, slots=True)
class Misfit:
    """Null fits, a value does not."""

    type: pa.DataType

    def __call__(self, column: pa.Array) -> tuple[pa.Array, Refused]:
        return pa.nulls(len(column), self.type), _refused(column, present(column))

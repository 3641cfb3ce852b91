"""Raw Avro columns into final ones: the columnar twins of `values`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cdc_lakehouse.avro.faults import RecordFault
from cdc_lakehouse.avro.typed import values
from cdc_lakehouse.avro.typed.columns import (
    Refused,
    numbers_of,
    refused_of,
    with_numbers,
)
from cdc_lakehouse.avro.typed.values import Convert

NTZ, UTC = pa.timestamp("us"), pa.timestamp("us", tz="UTC")
_MAX, _MIN = 2**63 - 1, -(2**63)
_FEW = 16
"""So many values are converted one by one where the whole column cannot be."""


def days(column: pa.Array) -> tuple[pa.Array, Refused]:
    found = numbers_of(column, np.int32)
    wrong = (found < values.FIRST_DAY) | (found > values.LAST_DAY)
    refused = refused_of(column, wrong)
    return with_numbers(column, found if refused is None else np.where(wrong, 0, found), pa.date32()), refused


def time_millis(column: pa.Array) -> tuple[pa.Array, Refused]:
    return with_numbers(column, numbers_of(column, np.int32).astype(np.int64) * 1000, pa.int64()), None


@dataclass(frozen=True, slots=True)
class Micros:
    """Twin of `values.scaled_micros`."""

    numerator: int = 1
    denominator: int = 1
    type: pa.DataType = NTZ

    def __call__(self, column: pa.Array) -> tuple[pa.Array, Refused]:
        found = numbers_of(column, np.int64)
        if self.denominator == 1:
            low, high = values.MINUS_INFINITY // self.numerator, values.INFINITY // self.numerator
        else:
            low, high = _MIN, _MAX
        wrong = (found <= low) | (found >= high)
        refused = refused_of(column, wrong)
        if refused is not None:
            found = np.where(wrong, 0, found)
        if self.denominator != 1:
            found = found // self.denominator
        elif self.numerator != 1:
            found = found * self.numerator
        return with_numbers(column, found, self.type), refused


@dataclass(frozen=True, slots=True)
class Each:
    """No twin: one value at a time."""

    type: pa.DataType
    convert: Convert

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
    convert: Convert

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


@dataclass(frozen=True, slots=True)
class Misfit:
    """Null fits, a value does not."""

    type: pa.DataType

    def __call__(self, column: pa.Array) -> tuple[pa.Array, Refused]:
        return pa.nulls(len(column), self.type), refused_of(column, np.ones(len(column), bool))

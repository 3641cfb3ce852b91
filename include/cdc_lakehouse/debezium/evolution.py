"""Types of one column over time: those that meet in Avro (`avro.typed.meeting`), or grow in Delta.

One MySQL column, TINYINT(1), is a boolean and a small number, depending on snapshot or stream
(`cdc-semantics` §4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cdc_lakehouse.avro.faults import RecordFault, ValueFault
from cdc_lakehouse.avro.typed import meeting
from cdc_lakehouse.avro.typed.columns import ConvertColumn, Refused, numbers_of, refused_of
from cdc_lakehouse.avro.typed.conversions import Cast
from cdc_lakehouse.avro.typed.values import Convert

_FLAGS = (pa.bool_(), pa.int16())
_DATE, _TIMESTAMP = pa.date32(), pa.timestamp("us")
_DAY = 86_400_000_000
_MOST_DIGITS = 38


def widened(was: pa.DataType, now: pa.DataType) -> pa.DataType | None:
    """The type that a column of `was` gets so that it holds `now` too; None when there is none.

    What comes out is `was`, or what Delta's type widening makes of it without touching a file.
    """
    if was in _FLAGS and now in _FLAGS:
        return was
    if {was, now} == {_DATE, _TIMESTAMP}:
        return _TIMESTAMP
    if pa.types.is_decimal128(was) and pa.types.is_decimal128(now):
        return _widened_decimal(was, now)
    grown = meeting.widened(was, now)
    if pa.types.is_nested(was) and grown != was:
        return None  # a stored struct or list that grows inside is more than a merge of ours can do
    return grown


def _widened_decimal(was: pa.DataType, now: pa.DataType) -> pa.DataType | None:
    """As many digits on either side of the point as either has; None where no type has that many."""
    scale = max(was.scale, now.scale)
    precision = max(was.precision - was.scale, now.precision - now.scale) + scale
    return pa.decimal128(precision, scale) if precision <= _MOST_DIGITS else None


def fitting(value: pa.DataType, column: pa.DataType) -> Convert | None:
    """From a final value of the one type to one of the other; None when it can stay as it is.

    Where types do not meet, the conversion faults: null still fits, a value does not.
    """
    if value == pa.bool_() and column == pa.int16():
        return int
    if value == pa.int16() and column == pa.bool_():
        return _flag
    if value == _DATE and column == _TIMESTAMP:
        return _midnight
    return meeting.fitting(value, column)


def fitting_column(value: pa.DataType, column: pa.DataType) -> ConvertColumn | None:
    """`fitting` for a column of final values."""
    if value == pa.bool_() and column == pa.int16():
        return Cast(column, int)
    if value == pa.int16() and column == pa.bool_():
        return Flag()
    if value == _DATE and column == _TIMESTAMP:
        return Midnight()
    return meeting.fitting_column(value, column)


@dataclass(frozen=True, slots=True)
class Flag:
    """Twin of the fit of a number to a boolean column."""

    def __call__(self, column: pa.Array) -> tuple[pa.Array, Refused]:
        found = numbers_of(column, np.int16)
        return column.cast(pa.bool_()), refused_of(column, (found < 0) | (found > 1))


@dataclass(frozen=True, slots=True)
class Midnight:
    """Twin of the fit of a date to a timestamp column: final dates are of the years 1 to 9999, so all fit."""

    def __call__(self, column: pa.Array) -> tuple[pa.Array, Refused]:
        return column.cast(_TIMESTAMP), None


def _midnight(days: int) -> int:
    return days * _DAY


def _flag(value: int) -> bool:
    if value not in (0, 1):
        raise RecordFault(ValueFault.INCOMPATIBLE_SCHEMA, "number other than 0 and 1, the column is boolean")
    return value == 1

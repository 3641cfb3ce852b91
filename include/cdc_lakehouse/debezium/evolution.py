"""Which type holds the values of two, and how a value gets from one to the other."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from cdc_lakehouse.avro.faults import RecordFault
from cdc_lakehouse.debezium.conversions import Cast, ConvertColumn, Flag, Misfit
from cdc_lakehouse.debezium.faults import ValueFault
from cdc_lakehouse.debezium.values import Convert, rescaled

_INTS = (pa.int16(), pa.int32(), pa.int64())
_FLOATS = (pa.float32(), pa.float64())
_FLAGS = (pa.bool_(), pa.int16())


def widened(was: pa.DataType, now: pa.DataType) -> pa.DataType | None:
    """The type that a column of `was` gets so that it holds `now` too; None when there is none."""
    if was == now:
        return was
    for ladder in (_INTS, _FLOATS):
        if was in ladder and now in ladder:
            return max(was, now, key=ladder.index)
    if was in _FLAGS and now in _FLAGS:
        # One MySQL column, TINYINT(1), is both, depending on snapshot or stream (`cdc-semantics` §4).
        return was
    if pa.types.is_decimal128(was) and pa.types.is_decimal128(now):
        return _widened_decimal(was, now)
    return None


def _widened_decimal(was: pa.DataType, now: pa.DataType) -> pa.DataType | None:
    if was.scale == now.scale:
        return max(was, now, key=lambda decimal: decimal.precision)
    holds = now.scale < was.scale and now.precision - now.scale <= was.precision - was.scale
    return was if holds else None


def fitting(value: pa.DataType, column: pa.DataType) -> Convert | None:
    """From a final value of the one type to one of the other; None when it can stay as it is.

    Where types do not meet, the conversion faults: null still fits, a value does not.
    """
    if value == column or any(_climbs(ladder, value, column) for ladder in (_INTS, _FLOATS)):
        return None
    if value == pa.bool_() and column == pa.int16():
        return int
    if value == pa.int16() and column == pa.bool_():
        return _flag
    if pa.types.is_decimal128(value) and pa.types.is_decimal128(column):
        return rescaled(column.precision, column.scale)
    detail = f"value is {value}, the column {column}"

    def misfit(_value: Any) -> Any:
        raise RecordFault(ValueFault.INCOMPATIBLE_SCHEMA, detail)

    return misfit


def fitting_column(value: pa.DataType, column: pa.DataType) -> ConvertColumn | None:
    """`fitting` for a column of final values."""
    if value == column:
        return None
    if any(_climbs(ladder, value, column) for ladder in (_INTS, _FLOATS)):
        return Cast(column, _as_it_is)
    if value == pa.bool_() and column == pa.int16():
        return Cast(column, int)
    if value == pa.int16() and column == pa.bool_():
        return Flag()
    if pa.types.is_decimal128(value) and pa.types.is_decimal128(column):
        return Cast(column, rescaled(column.precision, column.scale))
    return Misfit(column)


def _as_it_is(value: Any) -> Any:
    return value


def _climbs(ladder: tuple[pa.DataType, ...], value: pa.DataType, column: pa.DataType) -> bool:
    return value in ladder and column in ladder and ladder.index(value) <= ladder.index(column)


def _flag(value: int) -> bool:
    if value not in (0, 1):
        raise RecordFault(ValueFault.INCOMPATIBLE_SCHEMA, "number other than 0 and 1, the column is boolean")
    return value == 1

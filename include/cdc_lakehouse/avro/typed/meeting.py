"""Which type holds the values of two, and how a value gets from one to the other."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from cdc_lakehouse.avro.faults import RecordFault, ValueFault
from cdc_lakehouse.avro.typed.columns import ConvertColumn
from cdc_lakehouse.avro.typed.conversions import Cast, Misfit
from cdc_lakehouse.avro.typed.values import Convert, rescaled

_LADDERS = ((pa.int16(), pa.int32(), pa.int64()), (pa.float32(), pa.float64()))


def widened(was: pa.DataType, now: pa.DataType) -> pa.DataType | None:
    """The type that a column of `was` gets so that it holds `now` too; None when there is none."""
    if was == now:
        return was
    for ladder in _LADDERS:
        if was in ladder and now in ladder:
            return max(was, now, key=ladder.index)
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
    if value == column or _climbs(value, column):
        return None
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
    if _climbs(value, column):
        return Cast(column, _as_it_is)
    if pa.types.is_decimal128(value) and pa.types.is_decimal128(column):
        return Cast(column, rescaled(column.precision, column.scale))
    return Misfit(column)


def _as_it_is(value: Any) -> Any:
    return value


def _climbs(value: pa.DataType, column: pa.DataType) -> bool:
    return any(
        value in ladder and column in ladder and ladder.index(value) <= ladder.index(column)
        for ladder in _LADDERS
    )

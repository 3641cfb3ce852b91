"""Which type holds the values of two, and how a value gets from one to the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from cdc_lakehouse.avro.faults import RecordFault, ValueFault
from cdc_lakehouse.avro.typed.columns import ConvertColumn
from cdc_lakehouse.avro.typed.conversions import Cast, Misfit
from cdc_lakehouse.avro.typed.nested import Entries, Items, Reshape, Slot, entries_of, items_of, members_of
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
    return _widened_nested(was, now)


def _widened_nested(was: pa.DataType, now: pa.DataType) -> pa.DataType | None:
    if pa.types.is_struct(was) and pa.types.is_struct(now):
        return _widened_struct(was, now)
    if pa.types.is_list(was) and pa.types.is_list(now):
        item = widened(was.value_type, now.value_type)
        return None if item is None else pa.list_(item)
    if pa.types.is_map(was) and pa.types.is_map(now) and was.key_type == now.key_type:
        item = widened(was.item_type, now.item_type)
        return None if item is None else pa.map_(was.key_type, item)
    return None


def _widened_decimal(was: pa.DataType, now: pa.DataType) -> pa.DataType | None:
    if was.scale == now.scale:
        return max(was, now, key=lambda decimal: decimal.precision)
    holds = now.scale < was.scale and now.precision - now.scale <= was.precision - was.scale
    return was if holds else None


def _widened_struct(was: pa.StructType, now: pa.StructType) -> pa.DataType | None:
    """New members at the end."""
    members = {field.name: field.type for field in was}
    for field in now:
        type_ = widened(members.get(field.name, field.type), field.type)
        if type_ is None:
            return None
        members[field.name] = type_
    return pa.struct(list(members.items()))


def fitting(value: pa.DataType, column: pa.DataType) -> Convert | None:
    """From a final value of the one type to one of the other; None when it can stay as it is.

    Where types do not meet, the conversion faults: null still fits, a value does not.
    """
    if value == column or _climbs(value, column):
        return None
    if pa.types.is_decimal128(value) and pa.types.is_decimal128(column):
        return rescaled(column.precision, column.scale)
    if _is_inside(value, column):
        fits = {field.name: fitting(field.type, column.field(field.name).type) for field in value}
        return members_of({name: fit for name, fit in fits.items() if fit is not None})
    if pa.types.is_list(value) and pa.types.is_list(column):
        return items_of(fitting(value.value_type, column.value_type) or _as_it_is)
    if _are_maps_alike(value, column):
        return entries_of(fitting(value.item_type, column.item_type))
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
    return _fitting_nested(value, column)


def _fitting_nested(value: pa.DataType, column: pa.DataType) -> ConvertColumn | None:
    if _is_inside(value, column):
        return _reshape(value, column)
    if pa.types.is_list(value) and pa.types.is_list(column):
        return _wrapped(Items, fitting_column(value.value_type, column.value_type))
    if _are_maps_alike(value, column):
        return _wrapped(Entries, fitting_column(value.item_type, column.item_type))
    return Misfit(column)


def _is_inside(value: pa.DataType, column: pa.DataType) -> bool:
    """Structs, and no member of the value is unknown to the column."""
    return pa.types.is_struct(value) and pa.types.is_struct(column) and set(value.names) <= set(column.names)


def _are_maps_alike(value: pa.DataType, column: pa.DataType) -> bool:
    return pa.types.is_map(value) and pa.types.is_map(column) and bool(value.key_type == column.key_type)


def _reshape(value: pa.StructType, column: pa.StructType) -> Reshape:
    return Reshape(
        tuple(
            Slot(
                field.name,
                field.type,
                value.get_field_index(field.name),
                fitting_column(value.field(field.name).type, field.type)
                if field.name in value.names
                else None,
            )
            for field in column
        )
    )


def _wrapped(
    outer: Callable[[ConvertColumn], ConvertColumn], inner: ConvertColumn | None
) -> ConvertColumn | None:
    return None if inner is None else outer(inner)


def _as_it_is(value: Any) -> Any:
    return value


def _climbs(value: pa.DataType, column: pa.DataType) -> bool:
    return any(
        value in ladder and column in ladder and ladder.index(value) <= ladder.index(column)
        for ladder in _LADDERS
    )

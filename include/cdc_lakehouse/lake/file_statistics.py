"""The statistics of a data file as Delta's log has them: what readers skip files by.

They are bounds. A long text is cut, a timestamp rounded to milliseconds, both away from the values between.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

INDEXED_LEAVES = 32
"""Delta's own default: leaves of the schema, in its order, that have statistics."""
_TEXT_CHARACTERS = 32
_HIGHEST_CHARACTER = chr(0x10FFFF)
_MILLISECOND = timedelta(milliseconds=1)


def statistics_of(rows: pa.Table) -> dict[str, Any]:
    """Return the number of rows, and the lowest and highest value and the number of NULLs of each leaf."""
    lowest: dict[str, Any] = {}
    highest: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for number, (path, column) in enumerate(_list_leaves(rows)):
        if number == INDEXED_LEAVES:
            break
        _put_value(nulls, path, column.null_count)
        bounds = _find_bounds(column)
        if bounds is not None:
            _put_value(lowest, path, bounds[0])
            _put_value(highest, path, bounds[1])
    return {"numRecords": rows.num_rows, "minValues": lowest, "maxValues": highest, "nullCount": nulls}


def with_wide_bounds(statistics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the statistics of a file with deleted rows: its bounds may be wider than its values."""
    return {**statistics, "tightBounds": False}


def _list_leaves(rows: pa.Table) -> Iterator[tuple[tuple[str, ...], pa.ChunkedArray]]:
    for field, column in zip(rows.schema, rows.columns, strict=True):
        yield from _list_leaves_of((field.name,), column)


def _list_leaves_of(
    path: tuple[str, ...], column: pa.ChunkedArray
) -> Iterator[tuple[tuple[str, ...], pa.ChunkedArray]]:
    if not pa.types.is_struct(column.type):
        yield path, column
        return
    for field in column.type:
        yield from _list_leaves_of((*path, field.name), pc.struct_field(column, field.name))


def _put_value(document: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    *parents, name = path
    for parent in parents:
        document = document.setdefault(parent, {})
    document[name] = value


def _find_bounds(column: pa.ChunkedArray) -> tuple[Any, Any] | None:
    """Return what the log says of the lowest and highest value; None where it says nothing."""
    type_ = column.type
    if pa.types.is_floating(type_):
        # Readers disagree about the place of NaN.
        if pc.any(pc.is_nan(column)).as_py():
            return None
    elif not (
        pa.types.is_integer(type_)
        or pa.types.is_string(type_)
        or pa.types.is_date(type_)
        or pa.types.is_timestamp(type_)
        or pa.types.is_decimal(type_)
    ):
        return None
    both = pc.min_max(column)
    if not both["min"].is_valid:
        return None
    try:
        lowest, highest = _round_down(both["min"].as_py()), _round_up(both["max"].as_py())
    except (OverflowError, ValueError):  # a time that Python has no object for
        return None
    return None if lowest is None or highest is None else (lowest, highest)


def _round_down(value: Any) -> Any:
    match value:
        case str():
            return value[:_TEXT_CHARACTERS]
        case datetime():
            return _to_text(value - timedelta(microseconds=value.microsecond % 1000))
        case _:
            return _to_json(value)


def _round_up(value: Any) -> Any:
    """Return a value that is not lower; None where there is none of its kind."""
    match value:
        case str() if len(value) > _TEXT_CHARACTERS:
            # A character follows that is lower than the highest one, so the cut text with that one is above.
            is_highest = value[_TEXT_CHARACTERS] == _HIGHEST_CHARACTER
            return None if is_highest else value[:_TEXT_CHARACTERS] + _HIGHEST_CHARACTER
        case datetime() if value.microsecond % 1000:
            try:
                return _round_down(value + _MILLISECOND)
            except OverflowError:
                return None
        case _:
            return _round_down(value)


def _to_json(value: Any) -> Any:
    match value:
        case Decimal():
            return _decimal_to_json(value)
        case float() if not math.isfinite(value):
            return None
        case int() | float():
            return value
        case _:
            return value.isoformat()


def _decimal_to_json(value: Decimal) -> int | float | None:
    """Return the number as JSON can hold it exactly; None where it cannot."""
    if value == value.to_integral_value():
        return int(value)
    number = float(value)
    return number if Decimal(repr(number)) == value else None


def _to_text(value: datetime) -> str:
    text = value.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return f"{text}Z" if value.tzinfo is not None else text

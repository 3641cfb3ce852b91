"""The statistics of a data file as Delta's log has them: what readers skip files by.

They are bounds. A long text is cut, a timestamp rounded to milliseconds, both away from the values between.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

INDEXED_LEAVES = 32
"""Delta's own default: leaves of the schema, in its order, that have statistics."""
_TEXT_CHARACTERS = 32
_HIGHEST_CHARACTER = chr(0x10FFFF)
_MILLISECOND = timedelta(milliseconds=1)


_MOST_LEAVES = "delta.dataSkippingNumIndexedCols"
_NAMES = "delta.dataSkippingStatsColumns"
_PART_OF_A_NAME = re.compile(r"`((?:[^`]|``)+)`|([^`.,\s]+)|([.,])")

LeafPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IndexedColumns:
    """The leaves of a table that have statistics, as its properties say."""

    most: int = INDEXED_LEAVES
    """The first leaves of the schema; -1 for all."""
    names: tuple[LeafPath, ...] | None = None
    """Columns, or members of structs, in place of the first leaves. All leaves below them are meant."""

    @classmethod
    def of_table(cls, properties: Mapping[str, str]) -> IndexedColumns:
        """Return what Delta's own writers keep to for a table with these properties."""
        most = int(properties.get(_MOST_LEAVES, INDEXED_LEAVES))
        return cls(most, _split_names(properties[_NAMES]) if _NAMES in properties else None)

    def choose(
        self, leaves: Iterable[tuple[LeafPath, pa.ChunkedArray]]
    ) -> Iterator[tuple[LeafPath, pa.ChunkedArray]]:
        """Yield those leaves of a table that have statistics."""
        if self.names is None:
            yield from islice(leaves, None if self.most < 0 else self.most)
            return
        for path, column in leaves:
            if any(path[: len(name)] == name for name in self.names):
                yield path, column


def _split_names(text: str) -> tuple[LeafPath, ...]:
    """Return the columns of a list like "id, at.commit, `a.b`"."""
    names: list[list[str]] = [[]]
    for quoted, plain, separator in _PART_OF_A_NAME.findall(text):
        if separator == ",":
            names.append([])
        elif not separator:
            names[-1].append(plain or quoted.replace("``", "`"))
    return tuple(tuple(name) for name in names if name)


def statistics_of(rows: pa.Table) -> dict[str, Any]:
    """Return the number of rows, and the lowest and highest value and the number of NULLs of each leaf."""
    statistics = FileStatistics()
    statistics.add(rows)
    return statistics.document()


class FileStatistics:
    """The statistics of a file that is written in parts."""

    def __init__(self, indexed: IndexedColumns = IndexedColumns()) -> None:
        self._indexed = indexed
        self._rows = 0
        self._leaves: dict[LeafPath, _Leaf] = {}

    def add(self, rows: pa.Table) -> None:
        """Take further rows of the file, which have the columns of those before them."""
        self._rows += rows.num_rows
        for path, column in self._indexed.choose(_list_leaves(rows)):
            self._leaves.setdefault(path, _Leaf()).add(column)

    def document(self) -> dict[str, Any]:
        """Return what the log says of the file."""
        lowest: dict[str, Any] = {}
        highest: dict[str, Any] = {}
        nulls: dict[str, Any] = {}
        for path, leaf in self._leaves.items():
            _put_value(nulls, path, leaf.nulls)
            bounds = leaf.bounds()
            if bounds is not None:
                _put_value(lowest, path, bounds[0])
                _put_value(highest, path, bounds[1])
        return {"numRecords": self._rows, "minValues": lowest, "maxValues": highest, "nullCount": nulls}


@dataclass(slots=True)
class _Leaf:
    """What is known of the values of one leaf."""

    nulls: int = 0
    extremes: list[pa.Scalar] = field(default_factory=list)
    """The lowest and the highest value of each part that has values."""
    is_bounded: bool = True
    """False once a value has no place in the order of its type."""

    def add(self, column: pa.ChunkedArray) -> None:
        self.nulls += column.null_count
        self.is_bounded = self.is_bounded and _has_order(column)
        if self.is_bounded:
            both = pc.min_max(column)
            self.extremes += [both[name] for name in ("min", "max") if both[name].is_valid]

    def bounds(self) -> tuple[Any, Any] | None:
        """Return what the log says of the lowest and highest value; None where it says nothing."""
        if not self.is_bounded or not self.extremes:
            return None
        both = pc.min_max(pa.array(self.extremes, self.extremes[0].type))
        try:
            lowest, highest = _round_down(both["min"].as_py()), _round_up(both["max"].as_py())
        except (OverflowError, ValueError):  # a time that Python has no object for
            return None
        return None if lowest is None or highest is None else (lowest, highest)


def with_wide_bounds(statistics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the statistics of a file with deleted rows: its bounds may be wider than its values."""
    return {**statistics, "tightBounds": False}


def _list_leaves(rows: pa.Table) -> Iterator[tuple[LeafPath, pa.ChunkedArray]]:
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        yield from _list_leaves_of((name,), column)


def _list_leaves_of(path: LeafPath, column: pa.ChunkedArray) -> Iterator[tuple[LeafPath, pa.ChunkedArray]]:
    if not pa.types.is_struct(column.type):
        yield path, column
        return
    for member in column.type:
        yield from _list_leaves_of((*path, member.name), pc.struct_field(column, member.name))


def _put_value(document: dict[str, Any], path: LeafPath, value: Any) -> None:
    *parents, name = path
    for parent in parents:
        document = document.setdefault(parent, {})
    document[name] = value


def _has_order(column: pa.ChunkedArray) -> bool:
    """Return whether readers agree about the order of the values. They do not about the place of NaN."""
    type_ = column.type
    if pa.types.is_floating(type_):
        return not pc.any(pc.is_nan(column)).as_py()
    return bool(
        pa.types.is_integer(type_)
        or pa.types.is_string(type_)
        or pa.types.is_date(type_)
        or pa.types.is_timestamp(type_)
        or pa.types.is_decimal(type_)
    )


def _round_down(value: Any) -> Any:
    """Return a value that is not higher. Some readers order -0.0 below 0.0, so a zero is the lower one."""
    match value:
        case float() if value == 0:
            return -0.0
        case str():
            return value[:_TEXT_CHARACTERS]
        case datetime():
            return _to_text(value - timedelta(microseconds=value.microsecond % 1000))
        case _:
            return _to_json(value)


def _round_up(value: Any) -> Any:
    """Return a value that is not lower; None where there is none of its kind."""
    match value:
        case float() if value == 0:
            return 0.0
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

"""Converters of records, lists and maps, made of the converters of what is in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from cdc_lakehouse.avro.faults import RecordFault
from cdc_lakehouse.avro.typed.columns import (
    ConvertColumn,
    Refused,
    numbers_of_offsets,
    refused_of,
    validity_of,
)
from cdc_lakehouse.avro.typed.values import Convert


def members_of(converts: Mapping[str, Convert]) -> Convert:
    """Of a record; other members stay."""

    def each(raw: Mapping[str, Any]) -> dict[str, Any]:
        found = dict(raw)
        for name, convert in converts.items():
            if found[name] is not None:
                try:
                    found[name] = convert(found[name])
                except RecordFault as fault:
                    raise fault.at(name) from None
        return found

    return each


def presence(_raw: Any) -> bool:
    """Of a record without fields."""
    return True


def items_of(convert: Convert) -> Convert:
    def each(raw: list[Any]) -> list[Any]:
        return [None if value is None else convert(value) for value in raw]

    return each


def entries_of(convert: Convert | None) -> Convert:
    """A map as the pairs that Arrow takes."""

    def each(raw: Any) -> list[tuple[str, Any]]:
        pairs = raw.items() if isinstance(raw, dict) else raw
        if convert is None:
            return list(pairs)
        return [(key, None if value is None else convert(value)) for key, value in pairs]

    return each


@dataclass(frozen=True, slots=True)
class Members:
    """Twin of `members_of`: one refused member refuses its record."""

    columns: tuple[ConvertColumn | None, ...]
    """By the place of the member; None for those that stay."""

    def __call__(self, column: pa.Array) -> tuple[pa.Array, Refused]:
        children, refused = [], None
        for place, convert in enumerate(self.columns):
            child, wrong = column.field(place), None
            if convert is not None:
                child, wrong = convert(child)
            if wrong is not None:
                refused = wrong if refused is None else refused | wrong
            children.append(child)
        whole = struct_of(column, list(column.type.names), children)
        return whole, None if refused is None else refused_of(column, refused)


def struct_of(column: pa.Array, names: list[str], children: list[pa.Array]) -> pa.Array:
    """Other members under the nulls of `column`."""
    type_ = pa.struct([(name, child.type) for name, child in zip(names, children, strict=True)])
    validity = validity_of(column)
    return pa.Array.from_buffers(type_, len(column), [validity], column.null_count, children=children)


@dataclass(frozen=True, slots=True)
class Slot:
    """A member of a wider struct, and where it comes from."""

    name: str
    type: pa.DataType
    place: int
    """In the narrower struct; -1 where that has no such member."""
    convert: ConvertColumn | None


@dataclass(frozen=True, slots=True)
class Reshape:
    """A struct as one with other or wider members; those it does not have are null."""

    slots: tuple[Slot, ...]

    def __call__(self, column: pa.Array) -> tuple[pa.Array, Refused]:
        children, refused = [], None
        for slot in self.slots:
            wrong = None
            child = pa.nulls(len(column), slot.type) if slot.place < 0 else column.field(slot.place)
            if slot.convert is not None:
                child, wrong = slot.convert(child)
            if wrong is not None:
                refused = wrong if refused is None else refused | wrong
            children.append(child)
        whole = struct_of(column, [slot.name for slot in self.slots], children)
        return whole, None if refused is None else refused_of(column, refused)


@dataclass(frozen=True, slots=True)
class Presence:
    """Twin of `presence`."""

    def __call__(self, column: pa.Array) -> tuple[pa.Array, Refused]:
        bits = pa.py_buffer(np.full((len(column) + 7) // 8, 255, np.uint8))
        buffers = [validity_of(column), bits]
        return pa.Array.from_buffers(pa.bool_(), len(column), buffers, column.null_count), None


@dataclass(frozen=True, slots=True)
class Nothing:
    """A column of nothing but nulls as one of a type."""

    type: pa.DataType

    def __call__(self, column: pa.Array) -> tuple[pa.Array, Refused]:
        return pa.nulls(len(column), self.type), None


@dataclass(frozen=True, slots=True)
class Items:
    """Twin of `items_of`: one refused item refuses its row."""

    item: ConvertColumn

    def __call__(self, column: pa.Array) -> tuple[pa.Array, Refused]:
        lists = from_its_start(column)
        final, refused = self.item(lists.values)
        return _outer(lists, pa.list_(final.type), final), rows_of(column, lists, refused)


@dataclass(frozen=True, slots=True)
class Entries:
    """Twin of `entries_of`: one refused value refuses its row."""

    value: ConvertColumn

    def __call__(self, column: pa.Array) -> tuple[pa.Array, Refused]:
        maps = from_its_start(column)
        final, refused = self.value(maps.items)
        type_ = pa.map_(pa.string(), final.type)
        inner = pa.StructArray.from_arrays([maps.keys, final], fields=[type_.key_field, type_.item_field])
        return _outer(maps, type_, inner), rows_of(column, maps, refused)


def from_its_start(column: pa.Array) -> pa.Array:
    """Of lists or maps: for whoever looks at their values and offsets."""
    return column if column.offset == 0 else pa.concat_arrays([column])


def _outer(lists: pa.Array, type_: pa.DataType, inner: pa.Array) -> pa.Array:
    validity = lists.buffers()[0] if lists.null_count else None
    return pa.Array.from_buffers(
        type_, len(lists), [validity, lists.buffers()[1]], lists.null_count, children=[inner]
    )


def rows_of(column: pa.Array, lists: pa.Array, refused: Refused) -> Refused:
    """Rows of `column` with a refused value in them; `lists` are its lists from their start."""
    if refused is None:
        return None
    refused_before = np.concatenate([[0], np.cumsum(refused)])
    return refused_of(column, np.diff(refused_before[numbers_of_offsets(lists)]) > 0)

"""Converters of lists and maps, made of the converter of what is in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from cdc_lakehouse.avro.typed.columns import ConvertColumn, Refused, numbers_of_offsets, refused_of
from cdc_lakehouse.avro.typed.values import Convert


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
class Items:
    """Twin of `items_of`: one refused item refuses its row."""

    item: ConvertColumn

    def __call__(self, column: pa.Array) -> tuple[pa.Array, Refused]:
        lists = _from_its_start(column)
        final, refused = self.item(lists.values)
        return _outer(lists, pa.list_(final.type), final), _rows_of(column, lists, refused)


@dataclass(frozen=True, slots=True)
class Entries:
    """Twin of `entries_of`: one refused value refuses its row."""

    value: ConvertColumn

    def __call__(self, column: pa.Array) -> tuple[pa.Array, Refused]:
        maps = _from_its_start(column)
        final, refused = self.value(maps.items)
        type_ = pa.map_(pa.string(), final.type)
        inner = pa.StructArray.from_arrays([maps.keys, final], fields=[type_.key_field, type_.item_field])
        return _outer(maps, type_, inner), _rows_of(column, maps, refused)


def _from_its_start(column: pa.Array) -> pa.Array:
    return column if column.offset == 0 else pa.concat_arrays([column])


def _outer(lists: pa.Array, type_: pa.DataType, inner: pa.Array) -> pa.Array:
    validity = lists.buffers()[0] if lists.null_count else None
    return pa.Array.from_buffers(
        type_, len(lists), [validity, lists.buffers()[1]], lists.null_count, children=[inner]
    )


def _rows_of(column: pa.Array, lists: pa.Array, refused: Refused) -> Refused:
    if refused is None:
        return None
    refused_before = np.concatenate([[0], np.cumsum(refused)])
    return refused_of(column, np.diff(refused_before[numbers_of_offsets(lists)]) > 0)

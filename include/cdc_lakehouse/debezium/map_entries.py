"""Connect's maps whose keys are no text: arrays of records of a key and a value (`cdc-semantics` §6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from cdc_lakehouse.avro.typed.columns import Refused, numbers_of_offsets, present
from cdc_lakehouse.avro.typed.nested import Members, from_its_start, members_of, rows_of
from cdc_lakehouse.avro.typed.plans import ValuePlan
from cdc_lakehouse.avro.typed.text_sizes import items_text_size, members_text_size
from cdc_lakehouse.avro.typed.values import Convert

_ENTRY = ("key", "value")


def is_map_entry(record: Mapping[str, Any]) -> bool:
    """As Confluent's and Apicurio's converters name and mark it."""
    named = str(record.get("name", "")).rpartition(".")[2] == "MapEntry"
    marked = record.get("connect.internal.type") == "MapEntry"
    return (named or marked) and tuple(field["name"] for field in record["fields"]) == _ENTRY


def map_plan(key: ValuePlan, value: ValuePlan) -> ValuePlan:
    """Of an array of map entries."""
    type_ = pa.map_(key.type, value.type)
    plans = dict(zip(_ENTRY, (key, value), strict=True))
    entry = members_of({name: plan.convert for name, plan in plans.items() if plan.convert is not None})
    column = Pairs(type_, Members((key.column, value.column)))
    sizes = items_text_size(members_text_size({name: plan.text_size for name, plan in plans.items()}))
    return ValuePlan(type_, pairs_of(entry), column, sizes)


def pairs_of(entry: Convert) -> Convert:
    def each(raw: list[Any]) -> list[tuple[Any, Any]]:
        return [(found["key"], found["value"]) for found in map(entry, raw)]

    return each


@dataclass(frozen=True, slots=True)
class Pairs:
    """Twin of `pairs_of`: a list of entries becomes a map."""

    type: pa.MapType
    entry: Members

    def __call__(self, column: pa.Array) -> tuple[pa.Array, Refused]:
        lists = from_its_start(column)
        entries, refused = self.entry(lists.values)
        keys, items, offsets = entries.field(0), entries.field(1), lists.buffers()[1]
        if keys.null_count:
            # A refused key is null, and Arrow ends the whole process where a map has such a key.
            kept = present(keys)
            keys, items = keys.filter(pa.array(kept)), items.filter(pa.array(kept))
            before = np.concatenate([[0], np.cumsum(kept)]).astype(np.int32)
            offsets = pa.py_buffer(before[numbers_of_offsets(lists)])
        inner = pa.StructArray.from_arrays([keys, items], fields=[self.type.key_field, self.type.item_field])
        validity = lists.buffers()[0] if lists.null_count else None
        buffers = [validity, offsets]
        whole = pa.Array.from_buffers(self.type, len(lists), buffers, lists.null_count, children=[inner])
        return whole, rows_of(column, lists, refused)

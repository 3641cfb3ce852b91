"""Plans of nested records: structs, and Connect's maps whose keys are no text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.avro.faults import RecordFault
from cdc_lakehouse.avro.typed.columns import ConvertColumn, Refused, numbers_of_offsets, refused_of
from cdc_lakehouse.avro.typed.plans import TypeRefusedError, ValuePlan
from cdc_lakehouse.avro.typed.values import Convert

_ENTRY = ("key", "value")


def record_plan(members: Mapping[str, ValuePlan]) -> ValuePlan:
    """A struct of what the members become."""
    type_ = pa.struct([(name, plan.type) for name, plan in members.items()])
    if not members:
        raise TypeRefusedError("record without fields")
    if all(plan.convert is None for plan in members.values()):
        return ValuePlan(type_)
    converts = {name: plan.convert for name, plan in members.items()}
    return ValuePlan(type_, members_of(converts), Members(tuple(plan.column for plan in members.values())))


def is_map_entry(record: Mapping[str, Any]) -> bool:
    """The record that converters wrap the entries of a map in whose keys are no text (`cdc-semantics` §6)."""
    named = str(record.get("name", "")).rpartition(".")[2] == "MapEntry"
    marked = record.get("connect.internal.type") == "MapEntry"
    return (named or marked) and tuple(field["name"] for field in record["fields"]) == _ENTRY


def map_plan(key: ValuePlan, value: ValuePlan) -> ValuePlan:
    """Of an array of map entries."""
    type_ = pa.map_(key.type, value.type)
    entry = members_of({"key": key.convert, "value": value.convert})
    return ValuePlan(type_, pairs_of(entry), Pairs(type_, Members((key.column, value.column))))


def members_of(converts: Mapping[str, Convert | None]) -> Convert:
    def each(raw: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = dict(raw)
        for name, convert in converts.items():
            if convert is not None and found[name] is not None:
                try:
                    found[name] = convert(found[name])
                except RecordFault as fault:
                    raise fault.at(name) from None
        return found

    return each


def pairs_of(entry: Convert) -> Convert:
    def each(raw: list[Any]) -> list[tuple[Any, Any]]:
        return [(found["key"], found["value"]) for found in map(entry, raw)]

    return each


@dataclass(frozen=True, slots=True)
class Members:
    """Twin of `members_of`: one refused member refuses the record."""

    columns: tuple[ConvertColumn | None, ...]

    def __call__(self, column: pa.Array) -> tuple[pa.Array, Refused]:
        children, refused = [], np.zeros(len(column), bool)
        for place, convert in enumerate(self.columns):
            child = column.field(place)
            if convert is not None:
                child, wrong = convert(child)
                refused |= False if wrong is None else wrong
            children.append(child)
        names = column.type.names
        type_ = pa.struct([(name, child.type) for name, child in zip(names, children, strict=True)])
        mask = pc.is_null(column) if column.null_count else None
        whole = pa.StructArray.from_arrays(children, fields=list(type_), mask=mask)
        return whole, refused_of(column, refused)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Twin of `pairs_of`: a list of entries becomes a map without a copy."""

    type: pa.MapType
    entry: Members

    def __call__(self, column: pa.Array) -> tuple[pa.Array, Refused]:
        lists = column if column.offset == 0 else pa.concat_arrays([column])
        entries, refused = self.entry(lists.values)
        keys, values = entries.field(0), entries.field(1)
        inner = pa.StructArray.from_arrays([keys, values], fields=[self.type.key_field, self.type.item_field])
        validity = lists.buffers()[0] if lists.null_count else None
        whole = pa.Array.from_buffers(
            self.type, len(lists), [validity, lists.buffers()[1]], lists.null_count, children=[inner]
        )
        if refused is None:
            return whole, None
        before = np.concatenate([[0], np.cumsum(refused)])
        return whole, refused_of(column, np.diff(before[numbers_of_offsets(lists)]) > 0)

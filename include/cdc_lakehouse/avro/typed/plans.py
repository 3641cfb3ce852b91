"""From a type of a writer schema to its final Arrow type, and how raw values get there.

    null                         string, always null: Spark stores no column without a type
    record                       struct; a boolean, always true, for one without fields: Parquet has no
                                 group without members
    recursive record             string, JSON (`avro.json_text`)
    array, map                   list, map<string, …>
    union of null and one type   that type
    any other union              struct of `member0`, `member1`, … in the order of the branches that are
                                 not null, of which one is set
    enum                         string
    fixed                        binary

and logical types as `logical` says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cdc_lakehouse.avro.typed.logical import DATE, TIME_MILLIS, logical_plan
from cdc_lakehouse.avro.typed.nested import (
    Entries,
    Items,
    Members,
    Nothing,
    Presence,
    entries_of,
    items_of,
    members_of,
    presence,
)
from cdc_lakehouse.avro.typed.text_sizes import items_text_size, members_text_size
from cdc_lakehouse.avro.typed.value_plan import TypeRefusedError, ValuePlan, decimal_plan, one_by_one
from cdc_lakehouse.avro.writer import WriterSchema

__all__ = [
    "DATE",
    "TIME_MILLIS",
    "Semantic",
    "TypeRefusedError",
    "ValuePlan",
    "avro_alone",
    "decimal_plan",
    "one_by_one",
    "plan_root",
    "plan_value",
    "record_plan",
    "struct_plan",
]

Semantic = Callable[[Mapping[str, Any], str, Callable[[Any], ValuePlan]], ValuePlan | None]
"""Meaning beyond Avro's: from the attributes of a type, its kind, and a planner for the types inside, to
its plan; None leaves it to Avro. Asked for every type that has attributes, before Avro's own types, but
not for recursive ones, whose values come as text."""

_PLAIN: Mapping[str, ValuePlan] = {
    "null": ValuePlan(pa.string(), column=Nothing(pa.string())),
    "boolean": ValuePlan(pa.bool_()),
    "int": ValuePlan(pa.int32()),
    "long": ValuePlan(pa.int64()),
    "float": ValuePlan(pa.float32()),
    "double": ValuePlan(pa.float64()),
    "bytes": ValuePlan(pa.binary()),
    "string": ValuePlan(pa.string()),
    "enum": ValuePlan(pa.string()),
    "fixed": ValuePlan(pa.binary()),
}
_JSON = ValuePlan(pa.string())
_EMPTY_RECORD = ValuePlan(pa.bool_(), presence, Presence())


def avro_alone(_attributes: Mapping[str, Any], _kind: str, _plan: Callable[[Any], ValuePlan]) -> None:
    """No meaning beyond Avro's."""


def plan_value(node: Any, schema: WriterSchema, semantic: Semantic = avro_alone) -> ValuePlan:
    """Raises `TypeRefusedError`."""
    return _Planning(schema, semantic).plan(node)


def plan_root(schema: WriterSchema, semantic: Semantic = avro_alone) -> dict[str, ValuePlan] | ValuePlan:
    """Of each field where the root is a record, for even a recursive one has columns there."""
    node = schema.resolve(schema.root)
    planning = _Planning(schema, semantic)
    if isinstance(node, dict) and node["type"] in ("record", "error"):
        return {field["name"]: planning.plan(field["type"]) for field in node["fields"]}
    return planning.plan(node)


def record_plan(members: Mapping[str, ValuePlan]) -> ValuePlan:
    """A struct of what the members become."""
    return struct_plan(members) if members else _EMPTY_RECORD


def struct_plan(members: Mapping[str, ValuePlan]) -> ValuePlan:
    """Even of no members."""
    type_ = pa.struct([(name, plan.type) for name, plan in members.items()])
    converts = {name: plan.convert for name, plan in members.items() if plan.convert is not None}
    columns = tuple(plan.column for plan in members.values())
    return ValuePlan(
        type_,
        members_of(converts) if converts else None,
        Members(columns) if any(column is not None for column in columns) else None,
        members_text_size({name: plan.text_size for name, plan in members.items()}),
    )


@dataclass(frozen=True, slots=True)
class _Planning:
    schema: WriterSchema
    semantic: Semantic

    def plan(self, node: Any) -> ValuePlan:
        node = self.schema.resolve(node)
        if isinstance(node, list):
            return self._union(node)
        if isinstance(node, str):
            return _PLAIN[node]
        if self.schema.types.is_recursive(node):
            return _JSON
        kind = node["type"]
        return self.semantic(node, kind, self.plan) or logical_plan(node, kind) or self._structure(node, kind)

    def _union(self, branches: list[Any]) -> ValuePlan:
        plans = [self.plan(branch) for branch in branches if not self._is_null(branch)]
        if not plans:
            return _PLAIN["null"]
        if len(plans) == 1:
            return plans[0]
        return record_plan({f"member{place}": plan for place, plan in enumerate(plans)})

    def _is_null(self, node: Any) -> bool:
        node = self.schema.resolve(node)
        return node == "null" or (isinstance(node, dict) and node["type"] == "null")

    def _structure(self, node: Mapping[str, Any], kind: str) -> ValuePlan:
        match kind:
            case "record" | "error":
                return record_plan({field["name"]: self.plan(field["type"]) for field in node["fields"]})
            case "array":
                return _array(self.plan(node["items"]))
            case "map":
                return _map(self.plan(node["values"]))
            case _:
                return _PLAIN[kind]


def _array(item: ValuePlan) -> ValuePlan:
    convert = None if item.convert is None else items_of(item.convert)
    column = None if item.column is None else Items(item.column)
    return ValuePlan(pa.list_(item.type), convert, column, items_text_size(item.text_size))


def _map(value: ValuePlan) -> ValuePlan:
    column = None if value.column is None else Entries(value.column)
    type_ = pa.map_(pa.string(), value.type)
    return ValuePlan(type_, entries_of(value.convert), column, items_text_size(value.text_size))

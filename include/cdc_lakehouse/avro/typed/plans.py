"""From a type of a writer schema to its final Arrow type, and how raw values get there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cdc_lakehouse.avro.typed import conversions, values
from cdc_lakehouse.avro.typed.columns import ConvertColumn
from cdc_lakehouse.avro.typed.conversions import Each
from cdc_lakehouse.avro.typed.decimal_texts import DecimalTextColumn
from cdc_lakehouse.avro.typed.decimals import DecimalColumn
from cdc_lakehouse.avro.typed.nested import Entries, Items, entries_of, items_of
from cdc_lakehouse.avro.typed.values import Convert
from cdc_lakehouse.avro.writer import WriterSchema

_MAX_PRECISION = 38


@dataclass(frozen=True, eq=False, slots=True)
class ValuePlan:
    """How one field becomes final."""

    type: pa.DataType
    convert: Convert | None = None
    """None: the raw value is the final one."""
    column: ConvertColumn | None = None
    """The same for a column of raw values."""


class TypeRefusedError(Exception):
    """The text names the type; the caller says whose it is."""


Semantic = Callable[[Mapping[str, Any], str, Callable[[Any], ValuePlan]], ValuePlan | None]
"""Meaning beyond Avro's: from the attributes of a type, its kind, and a planner for the types inside, to
its plan; None leaves it to Avro. Asked for every type that has attributes, before Avro's own types."""

_PLAIN: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}


def avro_alone(_attributes: Mapping[str, Any], _kind: str, _plan: Callable[[Any], ValuePlan]) -> None:
    """No meaning beyond Avro's."""


def plan_value(node: Any, schema: WriterSchema, semantic: Semantic = avro_alone) -> ValuePlan:
    """Raises `TypeRefusedError`."""
    return _Planning(schema, semantic).plan(node)


@dataclass(frozen=True, slots=True)
class _Planning:
    schema: WriterSchema
    semantic: Semantic

    def plan(self, node: Any) -> ValuePlan:
        node = self._value_branch(node)
        if isinstance(node, str):
            return self._structural({}, node)
        return self.semantic(node, node["type"], self.plan) or self._structural(node, node["type"])

    def _value_branch(self, node: Any) -> Any:
        """The one branch of a nullable union that is not null, in either order."""
        node = self.schema.resolve(node)
        if not isinstance(node, list):
            return node
        branches = [self.schema.resolve(branch) for branch in node if branch != "null"]
        if len(branches) != 1:
            raise TypeRefusedError(f"union of {len(branches)} types")
        return branches[0]

    def _structural(self, attributes: Mapping[str, Any], kind: str) -> ValuePlan:
        if attributes.get("logical") not in (None, "uuid"):
            raise TypeRefusedError(f"{kind} with the logical type {attributes['logical']}")
        if kind == "array":
            return _array(self.plan(attributes["items"]))
        if kind == "map":
            return _map(self.plan(attributes["values"]))
        if kind not in _PLAIN:
            raise TypeRefusedError(kind)
        return ValuePlan(_PLAIN[kind])


DATE = ValuePlan(pa.date32(), values.days, conversions.days)
TIME_MILLIS = ValuePlan(pa.int64(), values.time_millis_to_micros, conversions.time_millis)


def one_by_one(type_: pa.DataType, convert: Convert) -> ValuePlan:
    """For what is rare: the column is converted value by value too."""
    return ValuePlan(type_, convert, Each(type_, convert))


def decimal_plan(precision: int, scale: int) -> ValuePlan:
    """Text for what no decimal type of Spark holds."""
    if precision > _MAX_PRECISION or not 0 <= scale <= precision:
        return ValuePlan(pa.string(), values.wide_decimal_of(scale), DecimalTextColumn(scale))
    type_ = pa.decimal128(precision, scale)
    return ValuePlan(type_, values.decimal_of(precision, scale), DecimalColumn(precision, scale))


def _array(item: ValuePlan) -> ValuePlan:
    type_ = pa.list_(item.type)
    if item.convert is None or item.column is None:
        return ValuePlan(type_)
    return ValuePlan(type_, items_of(item.convert), Items(item.column))


def _map(value: ValuePlan) -> ValuePlan:
    column = None if value.column is None else Entries(value.column)
    return ValuePlan(pa.map_(pa.string(), value.type), entries_of(value.convert), column)

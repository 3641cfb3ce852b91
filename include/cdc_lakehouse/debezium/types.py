"""Semantic types: what arrives, and the Arrow type that it is stored as (`cdc-semantics` §7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cdc_lakehouse.avro.writer import WriterSchema
from cdc_lakehouse.debezium import conversions, values
from cdc_lakehouse.debezium.conversions import ConvertColumn, Each, Items, Micros
from cdc_lakehouse.debezium.decimals import DecimalColumn
from cdc_lakehouse.debezium.values import Convert
from cdc_lakehouse.errors import UnsupportedTypeError

_NTZ, _UTC = pa.timestamp("us"), pa.timestamp("us", tz="UTC")
_MAX_PRECISION = 38
_UNKNOWN_PRECISION = 64
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_VARIABLE_SCALE = "io.debezium.data.VariableScaleDecimal"
_GEOMETRY = "io.debezium.data.geometry."
_VECTORS = frozenset({"io.debezium.data.DoubleVector", "io.debezium.data.FloatVector"})


@dataclass(frozen=True, eq=False, slots=True)
class ValuePlan:
    """How one field becomes final."""

    type: pa.DataType
    convert: Convert | None = None
    """None: the raw value is the final one."""
    column: ConvertColumn | None = None
    """The same for a column of raw values."""


@dataclass(frozen=True, slots=True)
class Place:
    """Whose type is being planned, for the error."""

    table: str
    column: str

    def unsupported(self, what: str) -> UnsupportedTypeError:
        return UnsupportedTypeError(table=self.table, column=self.column, type=what)


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

_SEMANTIC: Mapping[str, tuple[str, ValuePlan]] = {
    "io.debezium.time.Date": ("int", ValuePlan(pa.date32(), values.days, conversions.days)),
    "io.debezium.time.Time": (
        "int",
        ValuePlan(pa.int64(), values.time_millis_to_micros, conversions.time_millis),
    ),
    "io.debezium.time.MicroTime": ("long", ValuePlan(pa.int64())),
    "io.debezium.time.NanoTime": (
        "long",
        ValuePlan(pa.int64(), values.time_nanos_to_micros, conversions.time_nanos),
    ),
    "io.debezium.time.Timestamp": ("long", ValuePlan(_NTZ, values.millis_to_micros, Micros(numerator=1000))),
    "io.debezium.time.MicroTimestamp": ("long", ValuePlan(_NTZ, values.scaled_micros, Micros())),
    "io.debezium.time.NanoTimestamp": (
        "long",
        ValuePlan(_NTZ, values.nanos_to_micros, Micros(denominator=1000)),
    ),
    "io.debezium.time.ZonedTimestamp": ("string", ValuePlan(_UTC, values.zoned_to_micros, conversions.zoned)),
    "io.debezium.time.ZonedTime": ("string", ValuePlan(pa.string())),
    "io.debezium.time.MicroDuration": ("long", ValuePlan(pa.int64())),
    "io.debezium.time.Interval": ("string", ValuePlan(pa.string())),
    "io.debezium.time.Year": ("int", ValuePlan(pa.int32())),
    "org.apache.kafka.connect.data.Date": ("int", ValuePlan(pa.date32(), values.days, conversions.days)),
    "org.apache.kafka.connect.data.Time": (
        "int",
        ValuePlan(pa.int64(), values.time_millis_to_micros, conversions.time_millis),
    ),
    "org.apache.kafka.connect.data.Timestamp": (
        "long",
        ValuePlan(_NTZ, values.millis_to_micros, Micros(numerator=1000)),
    ),
    "io.debezium.data.Json": ("string", ValuePlan(pa.string())),
    "io.debezium.data.Xml": ("string", ValuePlan(pa.string())),
    "io.debezium.data.Uuid": ("string", ValuePlan(pa.string())),
    "io.debezium.data.Enum": ("string", ValuePlan(pa.string())),
    "io.debezium.data.EnumSet": ("string", ValuePlan(pa.string())),
    "io.debezium.data.Ltree": ("string", ValuePlan(pa.string())),
    "io.debezium.data.Tsvector": ("string", ValuePlan(pa.string())),
    "io.debezium.data.Bits": ("bytes", ValuePlan(pa.binary())),
}


def plan_value(node: Any, schema: WriterSchema, place: Place) -> ValuePlan:
    """Raises `UnsupportedTypeError` for whatever the table of §7 here does not name."""
    node = _value_branch(node, schema, place)
    kind = node["type"] if isinstance(node, dict) else node
    attributes = node if isinstance(node, dict) else {}
    name = attributes.get("connect.name")
    if name == _DECIMAL or attributes.get("logical") == "decimal":
        return _decimal(attributes, kind, place)
    if name is None:
        return _structural(attributes, kind, schema, place)
    if kind == "record":
        return _semantic_record(attributes, name, schema, place)
    if kind == "array" and name in _VECTORS:
        return _array(attributes, schema, place)
    wanted, plan = _SEMANTIC.get(name, (None, None))
    if plan is None or wanted != kind:
        raise place.unsupported(f"{name} ({kind})")
    return plan


def _value_branch(node: Any, schema: WriterSchema, place: Place) -> Any:
    """The one branch of a nullable union that is not null, in either order."""
    node = schema.resolve(node)
    if not isinstance(node, list):
        return node
    branches = [schema.resolve(branch) for branch in node if branch != "null"]
    if len(branches) != 1:
        raise place.unsupported(f"union of {len(branches)} types")
    return branches[0]


def _decimal(attributes: Mapping[str, Any], kind: str, place: Place) -> ValuePlan:
    if kind not in ("bytes", "fixed"):
        raise place.unsupported(f"decimal ({kind})")
    parameters = attributes.get("connect.parameters") or {}
    try:
        scale = int(attributes.get("scale", parameters.get("scale", 0)))
        stated = parameters.get("connect.decimal.precision", attributes.get("precision", _UNKNOWN_PRECISION))
        precision = int(stated)
    except (TypeError, ValueError):
        raise place.unsupported("decimal without a scale or precision that is a number") from None
    if precision > _MAX_PRECISION or not 0 <= scale <= precision:
        return _one_by_one(pa.string(), values.wide_decimal_of(scale))
    type_ = pa.decimal128(precision, scale)
    return ValuePlan(type_, values.decimal_of(precision, scale), DecimalColumn(precision, scale))


def _one_by_one(type_: pa.DataType, convert: Convert) -> ValuePlan:
    return ValuePlan(type_, convert, Each(type_, convert))


def _structural(attributes: Mapping[str, Any], kind: str, schema: WriterSchema, place: Place) -> ValuePlan:
    if attributes.get("logical") not in (None, "uuid"):
        raise place.unsupported(f"{kind} with the logical type {attributes['logical']}")
    if kind == "int" and attributes.get("connect.type") in ("int8", "int16"):
        return ValuePlan(pa.int16(), values.small, conversions.small)
    if kind == "array":
        return _array(attributes, schema, place)
    if kind == "map":
        return _map(attributes, schema, place)
    if kind not in _PLAIN:
        raise place.unsupported(kind)
    return ValuePlan(_PLAIN[kind])


def _semantic_record(
    attributes: Mapping[str, Any], name: str, schema: WriterSchema, place: Place
) -> ValuePlan:
    if name == _VARIABLE_SCALE:
        return _one_by_one(pa.string(), values.variable_scale)
    if not name.startswith(_GEOMETRY):
        raise place.unsupported(f"{name} (record)")
    members = {field["name"]: plan_value(field["type"], schema, place) for field in attributes["fields"]}
    if any(member.convert is not None for member in members.values()):
        raise place.unsupported(f"{name} (record)")
    return ValuePlan(pa.struct([(member, plan.type) for member, plan in members.items()]))


def _array(attributes: Mapping[str, Any], schema: WriterSchema, place: Place) -> ValuePlan:
    item = plan_value(attributes["items"], schema, place)
    convert = item.convert
    if convert is None or item.column is None:
        return ValuePlan(pa.list_(item.type))

    def each(raw: list[Any]) -> list[Any]:
        return [None if value is None else convert(value) for value in raw]

    return ValuePlan(pa.list_(item.type), each, Items(item.column))


def _map(attributes: Mapping[str, Any], schema: WriterSchema, place: Place) -> ValuePlan:
    value = plan_value(attributes["values"], schema, place)
    type_ = pa.map_(pa.string(), value.type)
    if value.convert is values.small:
        return _one_by_one(type_, values.small_entries)
    if value.convert is not None:
        raise place.unsupported(f"map of {value.type}")
    return ValuePlan(type_, lambda raw: list(raw.items()))

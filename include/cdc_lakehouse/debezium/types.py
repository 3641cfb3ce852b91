"""Semantic types: what arrives, and the Arrow type that it is stored as (`cdc-semantics` §7).

Types without a semantic name are Avro's own (`avro.typed.plans`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cdc_lakehouse.avro.typed import plans
from cdc_lakehouse.avro.typed.conversions import NTZ, UTC, Micros
from cdc_lakehouse.avro.typed.plans import (
    DATE,
    TIME_MILLIS,
    TypeRefusedError,
    ValuePlan,
    decimal_plan,
    one_by_one,
)
from cdc_lakehouse.avro.typed.values import millis_to_micros, nanos_to_micros, scaled_micros
from cdc_lakehouse.avro.writer import WriterSchema
from cdc_lakehouse.debezium import conversions, values
from cdc_lakehouse.errors import UnsupportedTypeError

_UNKNOWN_PRECISION = 64
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_VARIABLE_SCALE = "io.debezium.data.VariableScaleDecimal"
_GEOMETRY = "io.debezium.data.geometry."
_VECTORS = frozenset({"io.debezium.data.DoubleVector", "io.debezium.data.FloatVector"})
_SMALL = frozenset({"int8", "int16"})


@dataclass(frozen=True, slots=True)
class Place:
    """Whose type is being planned, for the error."""

    table: str
    column: str

    def unsupported(self, what: str) -> UnsupportedTypeError:
        return UnsupportedTypeError(table=self.table, column=self.column, type=what)


_SEMANTIC: Mapping[str, tuple[str, ValuePlan]] = {
    "io.debezium.time.Date": ("int", DATE),
    "io.debezium.time.Time": ("int", TIME_MILLIS),
    "io.debezium.time.MicroTime": ("long", ValuePlan(pa.int64())),
    "io.debezium.time.NanoTime": (
        "long",
        ValuePlan(pa.int64(), values.time_nanos_to_micros, conversions.time_nanos),
    ),
    "io.debezium.time.Timestamp": ("long", ValuePlan(NTZ, millis_to_micros, Micros(numerator=1000))),
    "io.debezium.time.MicroTimestamp": ("long", ValuePlan(NTZ, scaled_micros, Micros())),
    "io.debezium.time.NanoTimestamp": (
        "long",
        ValuePlan(NTZ, nanos_to_micros, Micros(denominator=1000)),
    ),
    "io.debezium.time.ZonedTimestamp": ("string", ValuePlan(UTC, values.zoned_to_micros, conversions.zoned)),
    "io.debezium.time.ZonedTime": ("string", ValuePlan(pa.string())),
    "io.debezium.time.MicroDuration": ("long", ValuePlan(pa.int64())),
    "io.debezium.time.Interval": ("string", ValuePlan(pa.string())),
    "io.debezium.time.Year": ("int", ValuePlan(pa.int32())),
    "org.apache.kafka.connect.data.Date": ("int", DATE),
    "org.apache.kafka.connect.data.Time": ("int", TIME_MILLIS),
    "org.apache.kafka.connect.data.Timestamp": (
        "long",
        ValuePlan(NTZ, millis_to_micros, Micros(numerator=1000)),
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
    """Raises `UnsupportedTypeError` for whatever neither Avro nor the table of §7 here names."""
    try:
        return plans.plan_value(node, schema, _meaning)
    except TypeRefusedError as exc:
        raise place.unsupported(str(exc)) from None


def _meaning(attributes: Mapping[str, Any], kind: str, plan: Callable[[Any], ValuePlan]) -> ValuePlan | None:
    name = attributes.get("connect.name")
    if name == _DECIMAL or attributes.get("logical") == "decimal":
        return _decimal(attributes, kind)
    if name is None:
        small = kind == "int" and attributes.get("connect.type") in _SMALL
        return ValuePlan(pa.int16(), values.small, conversions.small) if small else None
    if kind == "array" and name in _VECTORS:
        return None
    if kind == "record":
        return _record(attributes, name, plan)
    wanted, found = _SEMANTIC.get(name, (None, None))
    if found is None or wanted != kind:
        raise TypeRefusedError(f"{name} ({kind})")
    return found


def _decimal(attributes: Mapping[str, Any], kind: str) -> ValuePlan:
    if kind not in ("bytes", "fixed"):
        raise TypeRefusedError(f"decimal ({kind})")
    parameters = attributes.get("connect.parameters") or {}
    try:
        scale = int(attributes.get("scale", parameters.get("scale", 0)))
        stated = parameters.get("connect.decimal.precision", attributes.get("precision", _UNKNOWN_PRECISION))
        return decimal_plan(int(stated), scale)
    except (TypeError, ValueError):
        raise TypeRefusedError("decimal without a scale or precision that is a number") from None


def _record(attributes: Mapping[str, Any], name: str, plan: Callable[[Any], ValuePlan]) -> ValuePlan:
    if name == _VARIABLE_SCALE:
        return one_by_one(pa.string(), values.variable_scale)
    if not name.startswith(_GEOMETRY):
        raise TypeRefusedError(f"{name} (record)")
    members = {field["name"]: plan(field["type"]) for field in attributes["fields"]}
    if any(member.convert is not None for member in members.values()):
        raise TypeRefusedError(f"{name} (record)")
    return ValuePlan(pa.struct([(member, found.type) for member, found in members.items()]))

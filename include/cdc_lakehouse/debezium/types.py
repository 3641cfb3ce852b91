"""Semantic types: what arrives, and the Arrow type that it is stored as (`cdc-semantics` §7).

Types without a semantic name are Avro's own (`avro.typed.plans`). So are those with a name that nobody here
knows, as a newer connector may send: their values are stored as they came, and the name is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from cdc_lakehouse.avro.typed import plans
from cdc_lakehouse.avro.typed.conversions import NTZ, UTC, Micros
from cdc_lakehouse.avro.typed.plans import DATE, TIME_MILLIS, TypeRefusedError, ValuePlan, decimal_plan
from cdc_lakehouse.avro.typed.text_sizes import VariableScaleTextSize
from cdc_lakehouse.avro.typed.values import millis_to_micros, nanos_to_micros, scaled_micros
from cdc_lakehouse.avro.writer import WriterSchema
from cdc_lakehouse.debezium import conversions, iso, iso_columns, values
from cdc_lakehouse.debezium.map_entries import is_map_entry, map_plan
from cdc_lakehouse.errors import UnsupportedTypeError

_UNKNOWN_PRECISION = 64
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_SMALL = frozenset({"int8", "int16"})
_AS_SENT = frozenset(
    {
        *(f"io.debezium.data.{name}" for name in ("DoubleVector", "FloatVector")),
        *(f"io.debezium.data.{name}" for name in ("SparseDoubleVector", "SparseVector")),
        *(
            f"io.debezium.data.geometry.{name}"
            for name in ("Point", "Line", "Circle", "Geometry", "Geography")
        ),
        *(f"io.debezium.time.Structured{name}" for name in ("Date", "Time", "Timestamp", "Duration")),
        *(f"io.debezium.time.StructuredZoned{name}" for name in ("Time", "Timestamp")),
    }
)
"""Lists and records whose members say everything: nothing of theirs is out of any range."""


@dataclass(frozen=True, slots=True)
class Place:
    """Whose type is being planned, for the error."""

    table: str
    column: str

    def unsupported(self, what: str) -> UnsupportedTypeError:
        return UnsupportedTypeError(table=self.table, column=self.column, type=what)


_MILLIS = ValuePlan(NTZ, millis_to_micros, Micros(numerator=1000))
_NANO_TIME = ValuePlan(pa.int64(), values.time_nanos_to_micros, conversions.time_nanos)
_VARIABLE_SCALE = ValuePlan(
    pa.string(), values.variable_scale, conversions.variable_scale, VariableScaleTextSize()
)
_LONG, _TEXT = ValuePlan(pa.int64()), ValuePlan(pa.string())

_SEMANTIC: Mapping[str, tuple[str, ValuePlan]] = {
    "io.debezium.time.Date": ("int", DATE),
    "io.debezium.time.Time": ("int", TIME_MILLIS),
    "io.debezium.time.MicroTime": ("long", _LONG),
    "io.debezium.time.NanoTime": ("long", _NANO_TIME),
    "io.debezium.time.Timestamp": ("long", _MILLIS),
    "io.debezium.time.MicroTimestamp": ("long", ValuePlan(NTZ, scaled_micros, Micros())),
    "io.debezium.time.NanoTimestamp": ("long", ValuePlan(NTZ, nanos_to_micros, Micros(denominator=1000))),
    "io.debezium.time.ZonedTimestamp": ("string", ValuePlan(UTC, iso.zoned_to_micros, iso_columns.zoned)),
    "io.debezium.time.ZonedTime": ("string", _TEXT),
    "io.debezium.time.IsoDate": ("string", ValuePlan(pa.date32(), iso.date_to_days, iso_columns.dates)),
    "io.debezium.time.IsoTime": ("string", ValuePlan(pa.int64(), iso.time_to_micros, iso_columns.times)),
    "io.debezium.time.IsoTimestamp": ("string", ValuePlan(NTZ, iso.local_to_micros, iso_columns.local)),
    "io.debezium.time.MicroDuration": ("long", _LONG),
    "io.debezium.time.NanoDuration": ("long", _LONG),
    "io.debezium.time.Interval": ("string", _TEXT),
    "io.debezium.time.Year": ("int", ValuePlan(pa.int32())),
    "org.apache.kafka.connect.data.Date": ("int", DATE),
    "org.apache.kafka.connect.data.Time": ("int", TIME_MILLIS),
    "org.apache.kafka.connect.data.Timestamp": ("long", _MILLIS),
    "io.debezium.data.VariableScaleDecimal": ("record", _VARIABLE_SCALE),
    **{
        f"io.debezium.data.{name}": ("string", _TEXT)
        for name in ("Json", "Xml", "Uuid", "Enum", "EnumSet", "Ltree", "Tsvector")
    },
    "io.debezium.data.Bits": ("bytes", ValuePlan(pa.binary())),
}


def plan_value(
    node: Any, schema: WriterSchema, place: Place, *, unknown: list[str] | None = None
) -> ValuePlan:
    """Names that nobody here knows are added to `unknown`.

    Raises `UnsupportedTypeError` for what cannot be stored even as it came.
    """
    meaning = _Meaning(schema)
    try:
        plan = plans.plan_value(node, schema, meaning)
    except TypeRefusedError as exc:
        raise place.unsupported(str(exc)) from None
    if unknown is not None:
        unknown.extend(meaning.unknown)
    return plan


@dataclass(slots=True)
class _Meaning:
    """What a type means beyond Avro, as `avro.typed.plans` asks for it."""

    schema: WriterSchema
    unknown: list[str] = field(default_factory=list)

    def __call__(
        self, attributes: Mapping[str, Any], kind: str, plan: Callable[[Any], ValuePlan]
    ) -> ValuePlan | None:
        name = _text(attributes.get("connect.name"))
        if name == _DECIMAL or attributes.get("logical") == "decimal":
            return _decimal(attributes, kind)
        wanted, found = _SEMANTIC.get(name or "", (None, None))
        if found is not None and wanted == kind and _is_whole(attributes, name):
            return found
        if name is not None and name not in _AS_SENT:
            self.unknown.append(f"{name} ({kind})")
        return self._structural(attributes, kind, plan)

    def _structural(
        self, attributes: Mapping[str, Any], kind: str, plan: Callable[[Any], ValuePlan]
    ) -> ValuePlan | None:
        if kind == "int" and _text(attributes.get("connect.type")) in _SMALL:
            return ValuePlan(pa.int16(), values.small, conversions.small)
        if kind == "array":
            return self._map(attributes["items"], plan)
        return None

    def _map(self, items: Any, plan: Callable[[Any], ValuePlan]) -> ValuePlan | None:
        """Of converters for keys that are no text; Spark knows no null as a key."""
        record = self.schema.resolve(items)
        if not (isinstance(record, dict) and record["type"] == "record" and is_map_entry(record)):
            return None
        if self.schema.types.is_recursive(record):
            return None
        key, value = (field["type"] for field in record["fields"])
        if self._may_be_null(key):
            return None
        return map_plan(plan(key), plan(value))

    def _may_be_null(self, node: Any) -> bool:
        node = self.schema.resolve(node)
        return isinstance(node, list) or (node["type"] if isinstance(node, dict) else node) == "null"


def _text(attribute: Any) -> str | None:
    """A schema may hold any JSON there; what is no text says nothing."""
    return attribute if isinstance(attribute, str) else None


def _is_whole(attributes: Mapping[str, Any], name: str | None) -> bool:
    """A record that has the members its converter asks for."""
    if name != "io.debezium.data.VariableScaleDecimal":
        return True
    members = [(member["name"], member["type"]) for member in attributes["fields"]]
    return members == [("scale", "int"), ("value", "bytes")]


def _decimal(attributes: Mapping[str, Any], kind: str) -> ValuePlan:
    if kind not in ("bytes", "fixed"):
        raise TypeRefusedError(f"decimal ({kind})")
    parameters = attributes.get("connect.parameters")
    parameters = parameters if isinstance(parameters, dict) else {}
    try:
        scale = int(attributes.get("scale", parameters.get("scale", 0)))
        stated = parameters.get("connect.decimal.precision", attributes.get("precision", _UNKNOWN_PRECISION))
        return decimal_plan(int(stated), scale)
    except (TypeError, ValueError, OverflowError):
        raise TypeRefusedError("decimal without a scale or precision that is a number") from None

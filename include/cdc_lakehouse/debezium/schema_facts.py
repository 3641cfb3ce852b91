"""What a value schema shows of the columns at the source: some types, and settings of the connector."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from cdc_lakehouse.debezium.inequalities import ANY_ARRAY, Inequality, Trait
from cdc_lakehouse.debezium.source_facts import ARRAY, SourceFacts

_TIME = "time.precision.mode"
_CLOCK, _ZONED_CLOCK = "time without time zone", "time with time zone"
_MOMENT, _INSTANT = "timestamp without time zone", "timestamp with time zone"
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_PRECISE = frozenset({"decimal.handling.mode=precise"})
_LONGEST_NUMBER_IN_LINE = 38
"""Digits: shorter ones take no more room than the pointer to where they would be stored instead."""
_LARGEST_SCALE = 1000
"""Of PostgreSQL. The connector takes -2 for 2046."""


@dataclass(frozen=True, slots=True)
class _Shown:
    types: frozenset[str]
    settings: frozenset[str] = frozenset()


def _shown(*types: str, time: str = "") -> _Shown:
    return _Shown(frozenset(types), frozenset(f"{_TIME}={mode}" for mode in time.split()))


_UNSTRUCTURED = "adaptive microseconds nanoseconds connect isostring"
_BY_NAME: Mapping[str, _Shown] = {
    "io.debezium.data.VariableScaleDecimal": _Shown(frozenset({"numeric"}), _PRECISE),
    _DECIMAL: _Shown(frozenset({"numeric(p,s)"}), _PRECISE),
    "io.debezium.time.Date": _shown("date", time="adaptive microseconds nanoseconds"),
    "io.debezium.time.IsoDate": _shown("date", time="isostring"),
    "io.debezium.time.StructuredDate": _shown("date", time="structured"),
    "org.apache.kafka.connect.data.Date": _shown("date", time="connect"),
    "io.debezium.time.Time": _shown(_CLOCK, time="adaptive"),
    "io.debezium.time.MicroTime": _shown(_CLOCK, time="adaptive microseconds"),
    "io.debezium.time.NanoTime": _shown(_CLOCK, time="nanoseconds"),
    "io.debezium.time.IsoTime": _shown(_CLOCK, time="isostring"),
    "io.debezium.time.StructuredTime": _shown(_CLOCK, time="structured"),
    "org.apache.kafka.connect.data.Time": _shown(_CLOCK, time="connect"),
    "io.debezium.time.ZonedTime": _shown(_ZONED_CLOCK, time=_UNSTRUCTURED),
    "io.debezium.time.StructuredZonedTime": _shown(_ZONED_CLOCK, time="structured"),
    "io.debezium.time.Timestamp": _shown(_MOMENT, time="adaptive"),
    "io.debezium.time.MicroTimestamp": _shown(_MOMENT, time="adaptive microseconds"),
    "io.debezium.time.NanoTimestamp": _shown(_MOMENT, time="nanoseconds"),
    "io.debezium.time.IsoTimestamp": _shown(_MOMENT, time="isostring"),
    "io.debezium.time.StructuredTimestamp": _shown(_MOMENT, time="structured"),
    "org.apache.kafka.connect.data.Timestamp": _shown(_MOMENT, time="connect"),
    "io.debezium.time.ZonedTimestamp": _shown(_INSTANT, time=_UNSTRUCTURED),
    "io.debezium.time.StructuredZonedTimestamp": _shown(_INSTANT, time="structured"),
    "io.debezium.time.MicroDuration": _Shown(
        frozenset({"interval"}), frozenset({"interval.handling.mode=numeric"})
    ),
    "io.debezium.time.Interval": _Shown(
        frozenset({"interval"}), frozenset({"interval.handling.mode=string"})
    ),
    "io.debezium.data.Enum": _shown("enum"),
    "io.debezium.data.Tsvector": _shown("tsvector"),
    "io.debezium.data.geometry.Geometry": _shown("box", "lseg", "path", "polygon"),
    "io.debezium.data.geometry.Line": _shown("line"),
    "io.debezium.data.geometry.Circle": _shown("circle"),
}
_BY_KIND: Mapping[str, _Shown] = {
    "boolean": _shown("boolean"),
    "int": _shown("integer"),
    "long": _shown("bigint"),
    "float": _shown("real"),
    "double": _shown("double precision"),
}
_SMALL = _shown("smallint")
_ANYTHING = _shown()
_SOME_LIST = f"?{ARRAY}"

_SHOWN_TYPES = frozenset(
    name
    for each in (*_BY_NAME.values(), *_BY_KIND.values(), _SMALL)
    for type_ in each.types
    for name in (type_, type_ + ARRAY)
)
_PLAIN_UNLESS_PRECISE = ("numeric", "money")


def shows(known: Inequality) -> bool:
    """Whether every schema shows the columns that it concerns; the others only PostgreSQL itself does.

    A number that is sent as a string or a double looks like any string or double.
    """
    if known.trait is Trait.GENERATED:
        return False
    if known.trait is Trait.NULL_AND_DEFAULT:
        return True
    plain = any(each.startswith(_PLAIN_UNLESS_PRECISE) for each in known.types)
    typed = all(each == ANY_ARRAY or each in _SHOWN_TYPES for each in known.types)
    return typed and (not plain or _PRECISE.issuperset(known.settings or ("any",)))


def facts_of(value_schema: str) -> tuple[SourceFacts, ...]:
    """Of every field of the row, in its order."""
    return tuple(_facts(field) for field in row_fields(json.loads(value_schema)))


def row_fields(schema: Any) -> list[dict[str, Any]]:
    """Fields of the record inside `before`, where Debezium defines it; `after` only refers to it."""
    if not isinstance(schema, dict):
        return []
    for field in schema.get("fields", []):
        rows = [each for each in _branches(field["type"]) if _is_record(each)]
        if field["name"] in ("before", "after") and rows:
            return list(rows[0]["fields"])
    return []


def _facts(field: Mapping[str, Any]) -> SourceFacts:
    branches = list(_branches(field["type"]))
    values = [each for each in branches if each != "null"]
    node = values[0] if len(values) == 1 else None
    shown = _of(node)
    facts = SourceFacts(
        name=field["name"],
        types=shown.types,
        settings=shown.settings,
        is_nullable="null" in branches,
        has_default=field.get("default") is not None,
    )
    precision = node.get("precision") if isinstance(node, dict) else None
    in_line = isinstance(precision, int) and precision <= _LONGEST_NUMBER_IN_LINE
    return replace(facts, is_out_of_line=False) if in_line else facts


def _of(node: Any) -> _Shown:
    if isinstance(node, str):  # of Avro, or the name of a record that an earlier column defined
        return _BY_KIND.get(node) or _BY_NAME.get(node, _ANYTHING)
    if not isinstance(node, dict):
        return _ANYTHING
    if node.get("type") == "array":
        items = [each for each in _branches(node["items"]) if each != "null"]
        item = _of(items[0]) if len(items) == 1 else _ANYTHING
        types = frozenset(each + ARRAY for each in item.types) or frozenset({_SOME_LIST})
        return replace(item, types=types)
    name = node.get("connect.name")
    if not isinstance(name, str):
        return _SMALL if node.get("connect.type") == "int16" else _of(node.get("type"))
    return _named(name, node)


def _named(name: str, node: Mapping[str, Any]) -> _Shown:
    shown, scale = _BY_NAME.get(name, _ANYTHING), node.get("scale")
    if isinstance(scale, int) and scale > _LARGEST_SCALE:
        return replace(shown, types=frozenset({"numeric(p,-s)"}))
    if name == _DECIMAL and not _states_precision(node):
        return replace(shown, types=frozenset({"money"}))
    return shown


def _states_precision(node: Mapping[str, Any]) -> bool:
    """Of money the connector knows none."""
    parameters = node.get("connect.parameters")
    return isinstance(parameters, dict) and "connect.decimal.precision" in parameters


def _branches(node: Any) -> Iterator[Any]:
    yield from node if isinstance(node, list) else [node]


def _is_record(node: Any) -> bool:
    return isinstance(node, dict) and node.get("type") == "record"

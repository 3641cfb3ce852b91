"""Defaults of columns in a writer schema: those that the source really has, and those that replace nothing.

Where PostgreSQL computes a default (a sequence, a clock), the connector sends 0, an empty text or 1970.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa

from cdc_lakehouse.avro.faults import RecordFault
from cdc_lakehouse.debezium.envelope import Field, plan_envelope
from cdc_lakehouse.debezium.schema_facts import row_fields
from cdc_lakehouse.errors import ConfigError

_NO_UUID = "00000000-0000-0000-0000-000000000000"
_PLAIN_TEXTS = (None, "io.debezium.data.Uuid", "io.debezium.data.Enum")
"""Semantic names of texts whose empty value is known."""


def told_defaults(value_schema: str, *, table: str) -> Mapping[str, pa.Scalar]:
    """Return column -> the value that every row got when it was added with a default, where it is certain."""
    try:
        plans = {field.name: field for field in plan_envelope(value_schema, table=table).after}
    except ConfigError:
        return {}
    defaults = {}
    for field in row_fields(json.loads(value_schema)):
        plan = plans.get(field["name"])
        value = None if plan is None else _certain_default(field, plan)
        if value is not None:
            defaults[field["name"]] = value
    return defaults


def _certain_default(field: Mapping[str, Any], plan: Field) -> pa.Scalar | None:
    """Return the default; None for one that may replace a computed one, and for types that are not known.

    A boolean counts as it is: it is never computed. Where NULL is allowed, the default may have been set when
    the column was there already, for new rows alone.
    """
    raw, type_ = field.get("default"), plan.value.type
    nothing = () if pa.types.is_boolean(type_) else _values_of_nothing(type_, _semantic_name(field["type"]))
    if raw is None or nothing is None or "null" in _union_branches(field["type"]):
        return None
    if isinstance(raw, str) and _holds_bytes(field["type"]):
        raw = raw.encode("iso-8859-1")  # as Avro writes bytes in JSON
    try:
        value = raw if plan.value.convert is None else plan.value.convert(raw)
        final = pa.array([value], type_)[0]
    except (RecordFault, pa.ArrowException):
        return None  # infinity, or a year that the lake does not have
    return None if final.as_py() in (None, *nothing) else final


def _holds_bytes(node: Any) -> bool:
    values = [each for each in _union_branches(node) if each != "null"]
    return any((each.get("type") if isinstance(each, dict) else each) == "bytes" for each in values)


def _semantic_name(node: Any) -> str | None:
    values = [each for each in _union_branches(node) if isinstance(each, dict)]
    return values[0].get("connect.name") if len(values) == 1 else None


def _union_branches(node: Any) -> list[Any]:
    return node if isinstance(node, list) else [node]


def values_for_nothing(field: dict[str, Any], type_: pa.DataType) -> Sequence[Any] | None:
    """Return the values beside NULL that may mean no value; None where they are not known."""
    branches = field["type"] if isinstance(field["type"], list) else [field["type"]]
    values = [each for each in branches if each != "null"]
    name = values[0].get("connect.name") if len(values) == 1 and isinstance(values[0], dict) else None
    default = field.get("default")
    if default is None:
        return () if "null" in branches else _values_of_nothing(type_, name)
    nothing = _values_of_nothing(type_, name)
    is_plain = name is None and isinstance(default, bool | int | float | str)
    return (*nothing, default) if is_plain and nothing is not None else None


def _values_of_nothing(type_: pa.DataType, name: str | None) -> Sequence[Any] | None:
    if pa.types.is_boolean(type_):
        return (False,)
    if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return (0,)
    if pa.types.is_date(type_):
        return (date(1970, 1, 1),)
    if pa.types.is_timestamp(type_):
        return (datetime(1970, 1, 1, tzinfo=UTC if type_.tz else None),)
    if pa.types.is_string(type_) and name in _PLAIN_TEXTS:
        return ("", _NO_UUID)
    return None

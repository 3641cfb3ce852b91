"""Rows whose columns are of Avro's own types: the same as columns and one by one."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from debezium_damage import (  # type: ignore[import-not-found]
    KEY_ID,
    VALUE_ID,
    bit_flips,
    decoded_both_ways,
    first_difference,
    key_bytes,
    truncations,
)
from debezium_records import (  # type: ignore[import-not-found]
    columns,
    envelope_schema,
    event,
    field,
    framed,
    key_schema,
    optional,
    plans,
)

from cdc_lakehouse.errors import UnsupportedTypeError

POINT = {
    "type": "record",
    "name": "Point",
    "fields": [field("x", "double"), field("label", optional("string"))],
}
NODE = {"type": "record", "name": "Node", "fields": [field("v", "long"), field("next", ["null", "Node"])]}
FIELDS = [
    field("id", "long"),
    field("at", optional({"type": "long", "logicalType": "timestamp-nanos"})),
    field("guid", optional({"type": "fixed", "name": "Guid", "size": 16, "logicalType": "uuid"})),
    field("either", ["null", "long", "string", POINT]),
    field("point", optional("Point")),
    field("chain", optional(NODE)),
    field("days", optional({"type": "map", "values": {"type": "int", "logicalType": "date"}})),
    field("never", "null"),
    field("empty", {"type": "record", "name": "Nil", "fields": []}),
]
SCHEMA = envelope_schema(FIELDS)
GUID = UUID("89791762-2336-4186-9674-299b90a802e2")
ROW = {
    "id": 1, "at": 1_999, "guid": GUID.bytes,
    "either": ("shop.public.orders.Point", {"x": 0.5, "label": None}),
    "point": {"x": 1.5, "label": "here"}, "chain": {"v": 1, "next": {"v": 2, "next": None}},
    "days": {"a": 3}, "never": None, "empty": {},
}  # fmt: skip


def value_bytes(value: Any) -> bytes:
    return bytes(framed(VALUE_ID, SCHEMA, value))


def told() -> Any:
    schemas = {KEY_ID: json.dumps(key_schema()), VALUE_ID: json.dumps(SCHEMA)}
    return plans(columns=columns(SCHEMA), schemas=schemas)


def test_rows_of_all_these_types():
    found = decoded_both_ways([(key_bytes(), value_bytes(event(after=ROW)))] * 2, told())
    assert first_difference(found) is None
    after = found[0].column("after")
    assert after.type.field("at").type == pa.timestamp("us", tz="UTC")
    (row, _) = after.to_pylist()
    assert row["at"].microsecond == 1
    assert {name: row[name] for name in ("guid", "chain", "never", "empty", "point")} == {
        "guid": str(GUID),
        "chain": '{"v":1,"next":{"v":2,"next":null}}',
        "never": None,
        "empty": True,
        "point": {"x": 1.5, "label": "here"},
    }
    assert row["either"] == {"member0": None, "member1": None, "member2": {"x": 0.5, "label": None}}
    assert [(key, day.isoformat()) for key, day in row["days"]] == [("a", "1970-01-04")]


def test_damage_is_judged_alike():
    whole = value_bytes(event(after=ROW))
    records = [(key_bytes(), each) for each in (*truncations(whole), *bit_flips(whole))]
    assert first_difference(decoded_both_ways(records, told())) is None


def test_fields_of_a_nested_record_that_differ_in_case_only_are_refused():
    """Delta takes them for one."""
    twins = {"type": "record", "name": "Twins", "fields": [field("a", "int"), field("A", "int")]}
    with pytest.raises(UnsupportedTypeError, match="alike but for case"):
        columns(envelope_schema([field("id", "long"), field("x", {"type": "array", "items": twins})]))

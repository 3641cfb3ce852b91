"""Two prints of one schema are the same; what changes a value's bytes or type is not."""

from __future__ import annotations

import json

import pytest

from cdc_lakehouse.registry.sameness import same_schema

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}


def record(type_: object, **attributes: object) -> str:
    field = {"name": "amount", "type": type_, **attributes}
    return json.dumps({"type": "record", "name": "Value", "namespace": "shop", "fields": [field]})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (record("int"), json.dumps(json.loads(record("int")), indent=2)),
        (record("int"), record({"type": "int"})),
        (record("int"), record("int", doc="cents")),
        (record("int"), record("int").replace('"Value", "namespace": "shop"', '"shop.Value"')),
        (record(["null", "Value"]), record(["null", "shop.Value"])),
        (record(DECIMAL), record(dict(reversed(DECIMAL.items())))),
        (record({"type": "array", "items": "int"}), record({"type": "array", "items": {"type": "int"}})),
    ],
)
def test_another_print_is_the_same(one, other):
    assert same_schema(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (record("int"), record("long")),
        (record("int"), record(["null", "int"])),
        (record(["null", "int"]), record(["int", "null"])),
        (record(DECIMAL), record({**DECIMAL, "scale": 3})),
        (record("long"), record({"type": "long", "connect.name": "io.debezium.time.Date"})),
        (record({"type": "fixed", "name": "F", "size": 1}),
         record({"type": "fixed", "name": "F", "size": 2})),
        (record("int"), record("int").replace("amount", "total")),
        (record({"type": "enum", "name": "E", "symbols": ["a", "b"]}),
         record({"type": "enum", "name": "E", "symbols": ["b", "a"]})),
    ],
)  # fmt: skip
def test_another_meaning_is_not(one, other):
    assert not same_schema(one, other)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        '{"type":"record"}',
        '{"type":"record","name":1,"fields":[]}',
        "[" * 99_999,
        '{"type":"record","name":"R","fields":[1]}',
    ],
)
def test_what_is_no_schema_is_the_same_as_itself_only(text):
    assert same_schema(text, text)
    assert not same_schema(text, '"int"')
    assert not same_schema('"int"', text)

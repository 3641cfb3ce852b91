"""cdc-semantics §7: types made of others, and names that nobody here knows, both ways."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from avro_columns import columns_read  # type: ignore[import-not-found]
from debezium_records import decimal, field, payload, semantic  # type: ignore[import-not-found]

from cdc_lakehouse.avro.faults import RecordFault
from cdc_lakehouse.avro.typed.plans import ValuePlan
from cdc_lakehouse.avro.writer import writer_schema
from cdc_lakehouse.debezium.types import Place, plan_value
from cdc_lakehouse.errors import UnsupportedTypeError

TIME, DATA = "io.debezium.time.", "io.debezium.data."
SMALL = {"type": "int", "connect.type": "int16"}


def record(name: str, *fields: Any, **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def entries(key: Any, value: Any) -> dict[str, Any]:
    """A map as converters write it whose keys are no text."""
    entry = record("io.confluent.connect.avro.MapEntry", field("key", key), field("value", value))
    return {"type": "array", "items": entry}


def column_of(node: Any) -> dict[str, Any]:
    return record("R", field("x", ["null", node]))


def planned(node: Any, unknown: list[str] | None = None) -> ValuePlan:
    schema = writer_schema(json.dumps(column_of(node)))
    return plan_value(schema.root["fields"][0]["type"], schema, Place("orders", "x"), unknown=unknown)


def both_ways(node: Any, raw: list[Any]) -> tuple[list[Any], list[bool]]:
    """Final values and which are refused; the reader of single records must say the same."""
    plan, schema = planned(node), column_of(node)
    payloads = [payload(schema, {"x": value}) for value in raw]
    column, sound = columns_read(schema, payloads)
    assert all(sound)
    found, refused = column.field("x"), None
    if plan.column is not None:
        found, refused = plan.column(found)
    found.validate(full=True)
    assert found.type == plan.type
    wrong = [False] * len(raw) if refused is None else refused.tolist()
    singly = [_one(plan, writer_schema(json.dumps(schema)).read(each)["x"]) for each in payloads]
    assert wrong == [bad for _, bad in singly]
    values = found.to_pylist()
    kept = [value for value, bad in zip(values, wrong, strict=True) if not bad]
    assert kept == pa.array([value for value, bad in singly if not bad], plan.type).to_pylist()
    return [None if bad else value for value, bad in zip(values, wrong, strict=True)], wrong


def _one(plan: ValuePlan, raw: Any) -> tuple[Any, bool]:
    if raw is None or plan.convert is None:
        return raw, False
    try:
        return plan.convert(raw), False
    except RecordFault:
        return None, True


STRUCTURED_DATE = record(
    TIME + "StructuredDate",
    field("year", ["null", "int"]),
    field("month", ["null", {"type": "int", "connect.type": "int8"}]),
    field("day", ["null", {"type": "int", "connect.type": "int8"}]),
    field("specialValue", ["null", "string"]),
    **{"connect.name": TIME + "StructuredDate"},
)
SPARSE = record(
    DATA + "SparseDoubleVector",
    field("dimensions", SMALL),
    field("vector", entries(SMALL, "double")),
    **{"connect.name": DATA + "SparseDoubleVector"},
)
POINT = record(
    DATA + "geometry.Point",
    field("x", "double"),
    field("y", "double"),
    field("wkb", ["null", "bytes"]),
    field("srid", ["null", "int"]),
    **{"connect.name": DATA + "geometry.Point"},
)
CIRCLE = record(
    DATA + "geometry.Circle",
    field("center", POINT),
    field("radius", "double"),
    **{"connect.name": DATA + "geometry.Circle"},
)
GEOMETRY = record(
    DATA + "geometry.Geometry",
    field("wkb", "bytes"),
    field("srid", ["null", "int"]),
    field("extensions", ["null", {"type": "map", "values": "string"}]),
    **{"connect.name": DATA + "geometry.Geometry"},
)
FAR = {"year": 5_874_897, "month": 12, "day": 31, "specialValue": None}
ENDLESS = {"year": None, "month": None, "day": None, "specialValue": "POSITIVE_INFINITY"}
ZERO = {"x": 0.0, "y": -0.5, "wkb": None, "srid": None}


@pytest.mark.parametrize(
    ("node", "type_", "raw", "final"),
    [
        (STRUCTURED_DATE, "struct<year: int32, month: int16, day: int16, specialValue: string>",
         [FAR, None, ENDLESS], [FAR, None, ENDLESS]),
        (SPARSE, "struct<dimensions: int16, vector: map<int16, double>>",
         [{"dimensions": 5, "vector": [{"key": 1, "value": 1.5}]}, None, {"dimensions": 0, "vector": []}],
         [{"dimensions": 5, "vector": [(1, 1.5)]}, None, {"dimensions": 0, "vector": []}]),
        (POINT, "struct<x: double, y: double, wkb: binary, srid: int32>", [ZERO, None], [ZERO, None]),
        (CIRCLE, "struct<center: struct<x: double, y: double, wkb: binary, srid: int32>, radius: double>",
         [{"center": ZERO, "radius": 2.0}, None], [{"center": ZERO, "radius": 2.0}, None]),
        (GEOMETRY, "struct<wkb: binary, srid: int32, extensions: map<string, string>>",
         [{"wkb": b"", "srid": 4326, "extensions": {"a": "b"}}, None],
         [{"wkb": b"", "srid": 4326, "extensions": [("a", "b")]}, None]),
        (entries(SMALL, "string"), "map<int16, string>",
         [[{"key": -1, "value": "a"}, {"key": 2, "value": ""}], [], None], [[(-1, "a"), (2, "")], [], None]),
        (entries("long", ["null", decimal(4, 1)]), "map<int64, decimal128(4, 1)>",
         [[{"key": 2**40, "value": None}]], [[(2**40, None)]]),
        (entries(["null", "int"], "int"), "list<item: struct<key: int32, value: int32>>",
         [[{"key": None, "value": 1}]], [[{"key": None, "value": 1}]]),
        ({"type": "array", "items": ["null", SMALL]}, "list<item: int16>", [[1, None]], [[1, None]]),
        ({"type": "map", "values": SMALL}, "map<string, int16>", [{"a": 1}], [[("a", 1)]]),
        ({"type": "array", "items": semantic("string", TIME + "IsoDate")}, "list<item: date32[day]>",
         [["1970-01-02Z"]], None),
        (semantic("bytes", DATA + "Bits"), "binary", [b"A", b""], [b"A", b""]),
        (semantic("long", TIME + "NanoDuration"), "int64", [-(2**63)], [-(2**63)]),
    ],
)  # fmt: skip
def test_values_made_of_others(node, type_, raw, final):
    found, refused = both_ways(node, raw)
    assert str(planned(node).type).replace(" not null", "").replace(" ('entries')", "") == type_
    assert not any(refused)
    assert final is None or found == final


@pytest.mark.parametrize(
    ("node", "raw", "refused"),
    [
        ({"type": "array", "items": SMALL}, [[1], [1, 2**15], None, []], [False, True, False, False]),
        ({"type": "map", "values": SMALL}, [{"a": 1}, {"a": 1, "b": -(2**15) - 1}], [False, True]),
        (entries(SMALL, "int"), [[{"key": 2**15, "value": 1}], []], [True, False]),
        (entries("int", decimal(2, 0)), [[{"key": 1, "value": b"\x64"}], None], [True, False]),
        (
            SPARSE,
            [{"dimensions": 2**15, "vector": []}, None, {"dimensions": 1, "vector": []}],
            [True, False, False],
        ),
    ],
)
def test_one_refused_part_refuses_its_value(node, raw, refused):
    assert both_ways(node, raw)[1] == refused


@pytest.mark.parametrize(
    ("node", "type_", "raw", "unknown"),
    [
        (semantic("string", "com.acme.Money"), pa.string(), "1.50 EUR", "com.acme.Money (string)"),
        (semantic("long", TIME + "Date"), pa.int64(), 7, "io.debezium.time.Date (long)"),
        (semantic("int", TIME + "Decade", **{"connect.type": "int16"}), pa.int16(), 7, TIME + "Decade (int)"),
        (
            {"type": "array", "items": semantic("string", "com.acme.Money")},
            pa.list_(pa.string()),
            ["x"],
            "com.acme.Money (string)",
        ),
        (
            record(DATA + "Sphere", field("c", POINT), **{"connect.name": DATA + "Sphere"}),
            pa.struct(
                [
                    (
                        "c",
                        pa.struct(
                            [
                                ("x", pa.float64()),
                                ("y", pa.float64()),
                                ("wkb", pa.binary()),
                                ("srid", pa.int32()),
                            ]
                        ),
                    )
                ]
            ),
            {"c": ZERO},
            DATA + "Sphere (record)",
        ),
        (
            record(
                DATA + "VariableScaleDecimal",
                field("scale", "int"),
                **{"connect.name": DATA + "VariableScaleDecimal"},
            ),
            pa.struct([("scale", pa.int32())]),
            {"scale": 1},
            DATA + "VariableScaleDecimal (record)",
        ),
    ],
)
def test_an_unknown_type_is_stored_as_it_came_and_told(node, type_, raw, unknown):
    told: list[str] = []
    assert planned(node, told).type == type_
    assert told == [unknown]
    assert both_ways(node, [raw]) == ([raw], [False])


@pytest.mark.parametrize(
    "node", [STRUCTURED_DATE, SPARSE, CIRCLE, GEOMETRY, semantic("string", DATA + "Json")]
)
def test_a_known_type_is_not_told(node):
    told: list[str] = []
    planned(node, told)
    assert told == []


def test_a_map_key_that_means_nothing_refuses_its_row_only():
    key = semantic("string", TIME + "ZonedTimestamp")
    good = {"key": "2024-01-01T00:00:00Z", "value": 1}
    bad = {"key": "junk", "value": 2}

    values, refused = both_ways(entries(key, "int"), [[good], [bad, good], None, [], [good, good]])

    assert refused == [False, True, False, False, False]
    assert [value if value is None else [number for _, number in value] for value in values] == [
        [1],
        None,
        None,
        [],
        [1, 1],
    ]


def test_a_map_key_that_is_always_null_leaves_a_list_of_entries():
    node = entries("null", "int")

    values, refused = both_ways(node, [[{"key": None, "value": 1}]])

    assert pa.types.is_list(planned(node).type)
    assert (values, refused) == ([[{"key": None, "value": 1}]], [False])


@pytest.mark.parametrize("strange", [[], {}, 1, None])
@pytest.mark.parametrize("attribute", ["connect.name", "connect.type", "connect.parameters"])
def test_an_attribute_that_is_no_text_says_nothing(attribute, strange):
    assert planned({"type": "int", attribute: strange}).type == pa.int32()
    assert planned({**decimal(10, 2), attribute: strange}).type == pa.decimal128(10, 2)


def test_a_decimal_of_an_endless_scale_is_refused():
    with pytest.raises(UnsupportedTypeError):
        planned({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": float("inf")})

"""Avro as hostile input: frames, schema admission, strict values, unknown ids."""

from __future__ import annotations

import json
import pickle
from typing import Any
from uuid import UUID

import pytest
from debezium_records import payload  # type: ignore[import-not-found]
from hypothesis import given
from hypothesis import strategies as st

from cdc_lakehouse.avro.admission import SchemaRefusedError
from cdc_lakehouse.avro.faults import RecordFault
from cdc_lakehouse.avro.frames import Frame, parse_frame
from cdc_lakehouse.avro.unknown import UnknownSchemaIdsError, unknown_ids, unknown_ids_by_place
from cdc_lakehouse.avro.writer import writer_schema


def record(*types: Any, name: str = "R") -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": f"f{place}", "type": each} for place, each in enumerate(types)],
    }


def nested(depth: int) -> Any:
    node: Any = "int"
    for level in range(depth):
        node = record(node, name=f"R{level}")
    return node


def doubling(levels: int) -> Any:
    node = record("null", name="L0")
    for level in range(1, levels):
        node = record(node, f"L{level - 1}", name=f"L{level}")
    return node


def mutual(count: int) -> dict[str, Any]:
    """Each of these records leads to all others, and the root names each of them."""
    inner = [record(["null", "Hub"], name=f"N{place}") for place in range(count)]
    hub = record(*(["null", node] for node in inner), name="Hub")
    return record(["null", hub], *(["null", f"N{place}"] for place in range(count)), name="Root")


def test_records_that_lead_to_each_other_are_let_in_while_they_are_few():
    assert len(writer_schema(json.dumps(mutual(40))).types.recursive) == 41


def test_a_frame_is_a_zero_an_id_and_a_payload():
    assert parse_frame(b"\x00\x00\x00\x01\x02rest") == Frame(258, b"rest")


def test_a_frame_of_format_1_is_a_one_a_guid_and_a_payload():
    guid = UUID("89791762-2336-4186-9674-299b90a802e2")
    assert parse_frame(b"\x01" + guid.bytes + b"rest") == Frame(guid, b"rest")
    assert parse_frame(b"rest", b"\x01" + guid.bytes) == Frame(guid, b"rest")


@pytest.mark.parametrize(
    "data", [b"", b"\x00\x00\x00\x01", b"\x01" + b"g" * 15, b"\x00\xff\xff\xff\xff", b"{}"]
)
def test_anything_else_is_a_bad_frame(data):
    with pytest.raises(RecordFault) as caught:
        parse_frame(data)
    assert caught.value.code == "bad_frame"


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (json.dumps(nested(33)), "nested deeper than 32"),
        ("[" * 100_000, "not an Avro schema"),
        (json.dumps(record(*["int"] * 2001)), "more than 2000 fields"),
        (json.dumps({**record("int"), "doc": "x" * 1_000_000}), "larger than 1000000 bytes"),
        (json.dumps(record("R")), "recursive without end"),
        (json.dumps(record(record("R", name="S"), ["null", "R"])), "recursive without end"),
        (json.dumps(record([record(record("S", name="T"), name="S"), "null"])), "recursive without end"),
        (json.dumps(record({"type": "fixed", "name": "F", "size": -1})), "fixed of negative size"),
        (json.dumps(record(["null", ["int", "string"]])), "union in a union"),
        (json.dumps(record(["null", "null"])), "null twice"),
        (json.dumps({**record(), "fields": [{"name": "x", "type": "int"}] * 2}), "two fields of one name"),
        (json.dumps(record({"type": "enum", "name": "E", "symbols": ["x" * 1001]})), "more than 1000 char"),
        (json.dumps({**record(), "fields": [{"name": "\ud800", "type": "int"}]}), "half a surrogate pair"),
        (json.dumps(record({"type": "array", "items": "null"})), "take no bytes"),
        (json.dumps(record({"type": "array", "items": record(name="E")})), "take no bytes"),
        (json.dumps(doubling(30)), "stand for more than"),
        (
            json.dumps(record([{"type": "fixed", "name": f"F{n}", "size": 1} for n in range(101)])),
            "more than 100 br",
        ),
        (json.dumps(mutual(150)), "recursive types stand for more than 20000 fields"),
        (json.dumps(record("nothing")), "not an Avro schema"),
        ('"\ud800"', "not an Avro schema"),
        ("not json", "not an Avro schema"),
    ],
)
def test_a_hostile_schema_is_refused(schema, reason):
    with pytest.raises(SchemaRefusedError, match=reason):
        writer_schema(schema)


def test_a_schema_of_the_greatest_depth_is_let_in():
    assert writer_schema(json.dumps(nested(31))).read(b"\x02") is not None


@pytest.mark.parametrize(
    ("type_", "data", "code"),
    [
        ("string", b"\x01", "bad_avro"),
        ("bytes", b"\xfe\xff\xff\xff\x0fab", "truncated"),
        (["null", "int"], b"\x01\x02", "bad_avro"),
        (["null", "int"], b"\x04\x02", "bad_avro"),
        (["null", "int", "string"], b"\x01\x02", "bad_avro"),
        ({"type": "enum", "name": "E", "symbols": ["a"]}, b"\x01", "bad_avro"),
        ("boolean", b"\x02", "bad_avro"),
        ("int", b"\x80\x80\x80\x80\x10", "bad_avro"),
        ("long", b"\xff" * 9 + b"\x7f", "bad_avro"),
        ("long", b"\xff" * 30, "bad_avro"),
        ("double", b"1234567", "truncated"),
        ({"type": "fixed", "name": "F", "size": 4}, b"abc", "truncated"),
        ({"type": "array", "items": "int"}, b"\x80\x80\x80\x80\x10\x02", "bad_avro"),
        ("string", b"\x04\xff\xfe", "invalid_utf8"),
        ("int", b"\x02\x02", "trailing_bytes"),
    ],
)
def test_bytes_that_are_not_what_the_schema_says_are_a_fault(type_, data, code):
    with pytest.raises(RecordFault) as caught:
        writer_schema(json.dumps(record(type_))).read(data)
    assert caught.value.code == code


ALL = record(
    "null",
    "boolean",
    "int",
    "long",
    "double",
    "bytes",
    "string",
    ["string", "null"],
    {"type": "array", "items": "long"},
    {"type": "map", "values": ["null", "string"]},
    {"type": "enum", "name": "E", "symbols": ["a", "b"]},
    {"type": "fixed", "name": "F", "size": 2},
)
all_values = st.fixed_dictionaries(
    {
        "f0": st.none(),
        "f1": st.booleans(),
        "f2": st.integers(-(2**31), 2**31 - 1),
        "f3": st.integers(-(2**63), 2**63 - 1),
        "f4": st.floats(allow_nan=False),
        "f5": st.binary(),
        "f6": st.text(),
        "f7": st.none() | st.text(),
        "f8": st.lists(st.integers(-(2**63), 2**63 - 1)),
        "f9": st.dictionaries(st.text(), st.none() | st.text()),
        "f10": st.sampled_from("ab"),
        "f11": st.binary(min_size=2, max_size=2),
    }
)


@given(all_values)
def test_what_fastavro_writes_is_read_back(value):
    assert writer_schema(json.dumps(ALL)).read(payload(ALL, value)) == value


def test_unknown_ids_survive_being_text_and_being_pickled():
    guid = UUID("89791762-2336-4186-9674-299b90a802e2")
    error = pickle.loads(pickle.dumps(UnknownSchemaIdsError([7], [12, guid, 9])))  # noqa: S301
    text = f"org.apache.spark.api.python.PythonException: Traceback ...\n{error}\n\tat org.apache"
    assert unknown_ids(text) == frozenset({7, 9, 12, guid})
    assert unknown_ids_by_place(text).keys == frozenset({7})
    assert unknown_ids_by_place(text).values == frozenset({9, 12, guid})


def test_other_failures_name_no_unknown_ids():
    assert unknown_ids("java.lang.OutOfMemoryError: 7") == frozenset()

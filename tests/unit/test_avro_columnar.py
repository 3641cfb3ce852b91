"""Columns hold what fastavro wrote, and call bad what the strict reader calls bad."""

from __future__ import annotations

import random
from typing import Any

import pytest
from avro_columns import columns_read, strictly_sound  # type: ignore[import-not-found]
from avro_shapes import Shape, records  # type: ignore[import-not-found]
from debezium_records import payload  # type: ignore[import-not-found]
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_lakehouse.avro import columnar, repeated
from cdc_lakehouse.avro.columnar import Projection


def of(*types: Any) -> dict[str, Any]:
    fields = [{"name": f"f{place}", "type": each} for place, each in enumerate(types)]
    return {"type": "record", "name": "R", "fields": fields}


@st.composite
def written(draw: st.DrawFn) -> tuple[Any, list[bytes], list[Any]]:
    shape: Shape = draw(records())
    pairs = draw(st.lists(shape.values, min_size=1, max_size=6))
    return shape.schema, [payload(shape.schema, pair[0]) for pair in pairs], [pair[1] for pair in pairs]


@given(written())
@settings(max_examples=100, deadline=None)
def test_columns_hold_what_fastavro_wrote(case):
    schema, payloads, expected = case
    values, sound = columns_read(schema, payloads)
    assert sound == [True] * len(payloads)
    assert values.to_pylist() == expected


@given(written(), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_a_damaged_record_is_judged_as_the_strict_reader_judges_it(case, chance):
    schema, payloads, expected = case
    damaged = [damage(each, chance) for each in payloads]
    mixed = [each for pair in zip(payloads, damaged, strict=True) for each in pair]
    values, sound = columns_read(schema, mixed)
    assert sound == [strictly_sound(schema, each) for each in mixed]
    assert values.to_pylist()[::2] == expected


def damage(data: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(data) + 1)
    noise = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 4)))
    return chance.choice(
        [data[:place], data[:place] + noise + data[place:], data[:place] + noise + data[place + 1 :]]
    )


@given(written())
@settings(max_examples=60, deadline=None)
def test_a_projection_holds_its_fields_and_judges_all(case):
    schema, payloads, expected = case
    names = [field["name"] for field in schema["fields"]][::2]
    cut = [each[:-1] for each in payloads]
    values, sound = columns_read(schema, payloads + cut, Projection(tuple((name, None) for name in names)))
    assert sound == [strictly_sound(schema, each) for each in payloads + cut]
    wanted = [{name: each[name] for name in names} for each in expected]
    assert values.to_pylist()[: len(payloads)] == wanted


@pytest.mark.parametrize(
    ("type_", "data", "value"),
    [
        ("long", b"\x80\x00", 0),  # longer than needed
        ("long", b"\xff" * 9 + b"\x01", -(2**63)),
        ("long", b"\xfe" + b"\xff" * 8 + b"\x01", 2**63 - 1),
        ("int", b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 0),
        ({"type": "array", "items": "int"}, b"\x03\x04\x02\x04\x00", [1, 2]),  # sized block
        ({"type": "array", "items": "int"}, b"\x02\x02\x02\x04\x01\x01\x06\x00", [1, 2, 3]),  # many blocks
        ({"type": "array", "items": "int"}, b"\x00", []),
        ({"type": "map", "values": "int"}, b"\x01\x06\x02a\x02\x02\x02b\x04\x00", [("a", 1), ("b", 2)]),
        ([{"type": "record", "name": "E", "fields": []}, "null"], b"\x00", {}),
    ],
)
def test_unusual_encodings_are_read(type_, data, value):
    values, sound = columns_read(of(type_), [data] * 3)
    assert (values.to_pylist(), sound) == ([{"f0": value}] * 3, [True] * 3)


@pytest.mark.parametrize(
    ("type_", "data"),
    [
        ("long", b"\xff" * 9 + b"\x02"),
        ("long", b"\xff" * 30),
        ("int", b"\x80\x80\x80\x80\x10"),
        ("boolean", b"\x02"),
        ("string", b"\x01"),
        ("string", b"\x04\xff\xfe"),
        ("string", b"\x06\xed\xa0\x80"),
        ("bytes", b"\xfe\xff\xff\xff\x0fab"),
        ("bytes", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        (["null", "int"], b"\x01\x02"),
        (["null", "int"], b"\x80\x00"),
        (["null", "int", "string"], b"\x01"),
        (["null", "int", "string"], b"\x06"),
        ({"type": "enum", "name": "E", "symbols": ["a"]}, b"\x01"),
        ({"type": "fixed", "name": "F", "size": 2**31}, b"abc"),
        ({"type": "array", "items": "int"}, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00"),
        ({"type": "array", "items": "int"}, b"\x80\x80\x80\x80\x10\x02"),
        ({"type": "array", "items": "string"}, b"\x02\x02\xff\x00"),
        ("int", b"\x02\x02"),
    ],
)
def test_wrong_encodings_are_bad_and_their_neighbours_are_not(type_, data):
    assert not strictly_sound(of(type_), data)
    _, sound = columns_read(of(["null", "int"], type_), [b"\x00" + data, b"\x00" + data])
    assert sound == [False, False]


def test_a_key_twice_and_a_long_list_are_left_to_the_reader_of_single_records():
    twice = b"\x04\x02a\x02\x02a\x04\x00"
    assert columns_read(of({"type": "map", "values": "int"}), [twice, b"\x00"])[1] == [False, True]
    longer = payload(of({"type": "array", "items": "int"}), {"f0": list(range(5_000))})
    assert columns_read(of({"type": "array", "items": "int"}), [longer, b"\x00"])[1] == [False, True]


def test_long_lists_of_many_rows_are_read(monkeypatch):
    monkeypatch.setattr(repeated, "_ENOUGH_ROWS", 1)
    schema = of({"type": "array", "items": ["null", "string"]})
    sent = [{"f0": [str(item) if item % 3 else None for item in range(size)]} for size in (50, 0, 33)]
    values, sound = columns_read(schema, [payload(schema, each) for each in sent])
    assert (values.to_pylist(), sound) == (sent, [True] * 3)


def test_a_large_group_is_read_in_pieces(monkeypatch):
    monkeypatch.setattr(columnar, "PIECE_BYTES", 7)
    rows = [{"f0": "x" * size} for size in (3, 0, 9, 1, 1, 1, 20)]
    values, sound = columns_read(of("string"), [payload(of("string"), each) for each in rows])
    assert (values.to_pylist(), sound) == (rows, [True] * 7)


@pytest.mark.parametrize(
    "types", [["string"], ["int", "string", ["null", "long"]], [{"type": "array", "items": "string"}]]
)
def test_noise_is_judged_as_the_strict_reader_judges_it(types):
    chance = random.Random(4)  # noqa: S311
    noise = [chance.randbytes(chance.randrange(12)) for _ in range(3_000)]
    _, sound = columns_read(of(*types), noise)
    assert sound == [strictly_sound(of(*types), each) for each in noise]

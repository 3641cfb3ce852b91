"""Few bytes that ask for much (`guarantees` §4): no memory, no time, no stack, in either reader."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from avro_columns import columns_read, strictly_sound  # type: ignore[import-not-found]

from cdc_lakehouse.avro.decode import FramePlans, decode_frames


@contextmanager
def frugal(*, megabytes: int = 8, seconds: float = 2) -> Iterator[None]:
    tracemalloc.start()
    begin, before = time.process_time(), pa.total_allocated_bytes()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < megabytes * 1_000_000
        assert pa.total_allocated_bytes() - before < megabytes * 1_000_000
        assert time.process_time() - begin < seconds
    finally:
        tracemalloc.stop()


def row(node: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": "x", "type": node}]}


TWO_GIB = b"\xfe\xff\xff\xff\x0f"
EVEN_MORE = b"\xfe" + b"\xff" * 8 + b"\x01"
MINUS = b"\xff\xff\xff\xff\x0f"
LINK = {
    "type": "record",
    "name": "L",
    "fields": [{"name": "n", "type": ["null", "L"]}, {"name": "k", "type": {"type": "array", "items": "L"}}],
}


@pytest.mark.parametrize("size", [TWO_GIB, EVEN_MORE, MINUS])
@pytest.mark.parametrize(
    "node",
    [
        "string",
        "bytes",
        {"type": "array", "items": "int"},
        {"type": "array", "items": ["null", "string"]},
        {"type": "map", "values": "null"},
        {"type": "fixed", "name": "F", "size": 2**31},
        LINK,
    ],
)
def test_seven_bytes_that_ask_for_gibibytes(node, size):
    columns_read(row(node), [b""])  # compiled
    with frugal():
        assert columns_read(row(node), [size + b"ab"] * 300)[1] == [False] * 300
        assert not strictly_sound(row(node), size + b"ab")


@pytest.mark.parametrize("step", [b"\x02", b"\x00\x02"])
def test_six_kilobytes_of_nested_records(step):
    with frugal():
        data = step * (6_000 // len(step))
        assert columns_read(row(LINK), [data] * 50)[1] == [False] * 50
        assert not strictly_sound(row(LINK), data)


@pytest.mark.parametrize("precision", [5, 38, 400])
def test_a_decimal_of_400_kilobytes(precision):
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 2}
    plans = FramePlans.of({1: json.dumps(row(decimal))})
    big = b"\x00\x00\x00\x00\x01" + b"\x80\xea\x30" + b"\x7f" * 400_000
    small = b"\x00\x00\x00\x00\x01" + b"\x02\x07"
    batch = pa.record_batch({"frame": pa.array([big, small] * 100, pa.binary())})
    with frugal(megabytes=300):
        found = decode_frames(batch, plans)
    errors = found.column("error").to_pylist()
    assert errors[:2] == [{"code": "value_out_of_range", "detail": "x: decimal of 400000 bytes"}, None]
    assert found.column("value").null_count == 100


def wide(kind: str, fields: int) -> dict[str, Any]:
    """Of nulls that are a byte each, and hundreds of values in a column."""
    members = [{"name": f"f{place}", "type": kind} for place in range(fields)]
    return {"type": "array", "items": ["null", {"type": "record", "name": "Wide", "fields": members}]}


@pytest.mark.parametrize("rows", [1, 300])
@pytest.mark.parametrize("outer", [False, True])
def test_nulls_of_a_byte_that_are_hundreds_of_values(rows, outer):
    node = wide("long", 500)
    data = b"\xc0\x3e" + b"\x00" * 4_000 + b"\x00"
    if outer:
        node, data = {"type": "array", "items": node}, b"\x14" + (b"\x50" + b"\x00" * 41) * 10 + b"\x00"
    with frugal(megabytes=150):
        plans = FramePlans.of({1: json.dumps(row(node))})
        frames = pa.array([b"\x00\x00\x00\x00\x01" + data] * rows, pa.binary())
        found = decode_frames(pa.record_batch({"frame": frames}), plans)
        assert columns_read(row(node), [data] * rows)[1] == [False] * rows
    detail = "x: lists of more values than their bytes are good for"
    assert found.column("error").to_pylist() == [{"code": "record_too_large", "detail": detail}] * rows


def test_items_that_take_a_byte_and_have_hundreds_of_fields():
    members = [{"name": f"f{place}", "type": "null"} for place in range(1_900)]
    items = {"type": "record", "name": "Wide", "fields": [*members, {"name": "x", "type": "int"}]}
    data = b"\x80\x89\x7a" + b"\x02" * 1_000_000 + b"\x00"
    with frugal(megabytes=200, seconds=4):
        assert not strictly_sound(row({"type": "array", "items": items}), data)
        assert columns_read(row({"type": "map", "values": items}), [data[:10_000]] * 300)[1] == [False] * 300


def test_some_nulls_among_wide_items_are_no_harm():
    full = b"\x02" + b"\x02" * 100
    data = [b"\x14" + b"\x00" * 10 + b"\x00", b"\x20" + (full + b"\x00") * 8 + b"\x00", b"\x00"]
    assert columns_read(row(wide("long", 100)), data)[1] == [True] * 3
    assert all(strictly_sound(row(wide("long", 100)), each) for each in data)


def test_a_million_blocks_of_nothing():
    """Each block of an array says how many bytes it takes, which nobody believes."""
    data = b"\x01" + EVEN_MORE + b"\x02" + b"\x00"
    array = {"type": "array", "items": "int"}
    with frugal():
        assert columns_read(row(array), [data])[1] == [strictly_sound(row(array), data)] == [True]


def test_one_record_of_a_million_items_does_not_hold_up_its_neighbours():
    array = {"type": "array", "items": "int"}
    data = b"\x80\x89\x7a" + b"\x02" * 1_000_000 + b"\x00"
    with frugal(megabytes=200, seconds=3):
        assert columns_read(row(array), [data, b"\x02\x02\x00"])[1] == [False, True]

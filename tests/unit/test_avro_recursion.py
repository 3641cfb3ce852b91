"""Types that contain themselves: JSON text, within bounds; everything around them stays columnar."""

from __future__ import annotations

import json
import time
import tracemalloc
from typing import Any

import pytest
from avro_columns import columns_read, strictly_sound  # type: ignore[import-not-found]
from debezium_records import payload  # type: ignore[import-not-found]

from cdc_lakehouse.avro import columnar, repeated
from cdc_lakehouse.avro.faults import RecordFault
from cdc_lakehouse.avro.recursion import endless_types, recursive_types
from cdc_lakehouse.avro.writer import writer_schema

LIST = {
    "type": "record",
    "name": "Link",
    "fields": [{"name": "v", "type": "int"}, {"name": "next", "type": ["null", "Link"]}],
}
TREE = {
    "type": "record",
    "name": "Tree",
    "fields": [{"name": "kids", "type": {"type": "array", "items": "Tree"}}],
}


def holding(node: Any, *, after: str = "string") -> dict[str, Any]:
    fields = [("id", "int"), ("inner", node), ("after", after)]
    return {
        "type": "record",
        "name": "Row",
        "fields": [{"name": name, "type": each} for name, each in fields],
    }


def links(count: int) -> bytes:
    """`v` 1 and a `next` that is there, but for the last."""
    return b"\x02\x02" * (count - 1) + b"\x02\x00"


def row(inner: bytes) -> bytes:
    return b"\x0e" + inner + b"\x02x"


def test_the_recursive_part_is_json_and_the_rest_is_columns():
    sent = {"id": 7, "inner": {"v": 1, "next": {"v": 2, "next": None}}, "after": "x"}
    values, sound = columns_read(holding(LIST), [payload(holding(LIST), sent)] * 2)
    text = '{"v":1,"next":{"v":2,"next":null}}'
    assert (values.to_pylist(), sound) == ([{"id": 7, "inner": text, "after": "x"}] * 2, [True] * 2)
    assert writer_schema(json.dumps(holding(LIST))).read(payload(holding(LIST), sent))["inner"] == text


def test_a_recursive_root_has_columns_of_its_own():
    values, sound = columns_read(LIST, [links(3), links(1)])
    assert sound == [True, True]
    assert values.to_pylist() == [
        {"v": 1, "next": '{"v":1,"next":{"v":1,"next":null}}'},
        {"v": 1, "next": None},
    ]


def test_all_kinds_of_values_in_json():
    node = {
        "type": "record",
        "name": "All",
        "fields": [
            {"name": name, "type": each}
            for name, each in {
                "bytes": "bytes",
                "fixed": {"type": "fixed", "name": "F", "size": 2},
                "enum": {"type": "enum", "name": "E", "symbols": ["a", "b"]},
                "double": {"type": "array", "items": "double"},
                "flag": "boolean",
                "text": "string",
                "empty": {"type": "record", "name": "Nil", "fields": []},
                "nothing": "null",
                "sole": ["long"],
                "map": {"type": "map", "values": ["null", "int", "string"]},
                "again": {"type": "array", "items": "All"},
            }.items()
        ],
    }
    value = {
        "bytes": b"\x00\xff", "fixed": b"ab", "enum": "b", "double": [0.5, float("nan"), float("-inf")],
        "flag": True, "text": 'ä"\n', "empty": {}, "nothing": None, "sole": -(2**63),
        "map": {"k": ("string", "s"), "n": None, "i": ("int", 1)}, "again": [],
    }  # fmt: skip
    ((found,), sound) = columns_read(
        holding(node), [payload(holding(node), {"id": 1, "inner": value, "after": ""})]
    )
    assert sound == [True]
    assert json.loads(found["inner"].as_py()) == {
        "bytes": "AP8=", "fixed": "YWI=", "enum": "b", "double": [0.5, "NaN", "-Infinity"],
        "flag": True, "text": 'ä"\n', "empty": {}, "nothing": None, "sole": -(2**63),
        "map": {"k": {"member0": None, "member1": "s"}, "n": None, "i": {"member0": 1, "member1": None}},
        "again": [],
    }  # fmt: skip


@pytest.mark.parametrize("count", [1, 31, 32, 33, 3_000, 100_000])
def test_a_chain_of_at_most_32_levels_is_taken(count):
    data = row(links(count))
    assert columns_read(holding(LIST), [data, row(links(2))])[1] == [count <= 32, True]
    assert strictly_sound(holding(LIST), data) == (count <= 32)
    if count > 32:
        with pytest.raises(
            RecordFault, match="record_too_large: inner: recursive data of more than 32 levels"
        ):
            writer_schema(json.dumps(holding(LIST))).read(data)


def test_many_lists_inside_each_other_are_refused_before_the_stack_is_full():
    node: Any = "Deep"
    for _ in range(6):
        node = {"type": "array", "items": node}
    deep = {"type": "record", "name": "Deep", "fields": [{"name": "x", "type": node}]}
    data = row(b"\x02" * 2_000)
    assert columns_read(holding(deep), [data])[1] == [False]
    with pytest.raises(RecordFault, match="record_too_large: inner: data nested deeper than"):
        writer_schema(json.dumps(holding(deep))).read(data)


def test_long_names_do_not_make_long_texts_of_few_bytes():
    fields = [{"name": f"{'n' * 900}{place}", "type": "null"} for place in range(1_000)]
    kids = {"name": "kids", "type": {"type": "array", "items": "Wide"}}
    wide = {"type": "record", "name": "Wide", "fields": [*fields, kids]}
    data = row(b"\x80\x01" + b"\x00" * 65)
    tracemalloc.start()
    try:
        assert columns_read(holding(wide), [data])[1] == [False]
        with pytest.raises(RecordFault, match="record_too_large: inner: JSON text"):
            writer_schema(json.dumps(holding(wide))).read(data)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def seconds_for(item: Any, data: bytes) -> float:
    """Of 600 items in each of two records that are large behind them."""
    schema = holding({"type": "array", "items": item}, after="bytes")
    rows = [b"\x0e\xb0\x09" + data * 600 + b"\x00" + b"\x80\xc8\xd0\x07" + b"x" * 8_000_000] * 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeated, "_ENOUGH_ROWS", 1)
        patch.setattr(columnar, "MOST_BYTES_AS_COLUMNS", 10**9)
        begin = time.process_time()
        assert columns_read(schema, rows)[1] == [True, True]
        return time.process_time() - begin


def test_recursive_items_cost_no_copy_of_the_record_behind_them():
    """With one each time an item is looked at, 14 GB are copied."""
    plain = min(seconds_for("int", b"\x02") for _ in range(2))
    assert min(seconds_for(LIST, links(1)) for _ in range(2)) < 2 * plain + 0.1


def test_damage_in_a_recursive_part_is_judged_alike():
    whole = payload(TREE, {"kids": [{"kids": []}, {"kids": [{"kids": []}]}]})
    flips = [bytes(b ^ (1 << bit) if at == place else b for at, b in enumerate(row(whole)))
             for place in range(len(row(whole))) for bit in range(8)]  # fmt: skip
    cuts = [row(whole)[:size] for size in range(len(row(whole)))]
    schema = holding(TREE)
    _, sound = columns_read(schema, flips + cuts)
    assert sound == [strictly_sound(schema, each) for each in flips + cuts]
    assert any(sound)
    assert not all(sound)


def test_schemas_that_differ_in_names_of_types_share_a_plan():
    other = json.loads(json.dumps(LIST).replace("Link", "deep.Chain"))
    one, two = (writer_schema(json.dumps(holding(each))).wire for each in (LIST, other))
    assert one == two
    assert hash(one) == hash(two)
    longer = json.loads(json.dumps(LIST).replace('"int"', '"long"'))
    assert writer_schema(json.dumps(holding(longer))).wire != one


def test_types_that_contain_each_other():
    back = [{"name": "a", "type": ["null", "A"]}, {"name": "b", "type": {"type": "map", "values": "B"}}]
    b = {"type": "record", "name": "B", "fields": back}
    a = {"type": "record", "name": "A", "fields": [{"name": "b", "type": ["null", b]}]}
    schema = {**holding(a), "fields": [*holding(a)["fields"], {"name": "b", "type": "B"}]}
    sent = {"id": 1, "inner": {"b": {"a": {"b": None}, "b": {}}}, "after": "", "b": {"a": None, "b": {}}}
    ((found,), sound) = columns_read(schema, [payload(schema, sent)])
    assert sound == [True]
    assert found["inner"].as_py() == '{"b":{"a":{"b":null},"b":{}}}'
    assert found["b"].as_py() == '{"a":null,"b":{}}'


def test_cycles_are_found_among_names():
    def fields(*types: Any) -> dict[str, Any]:
        return {
            "type": "record",
            "fields": [{"name": f"f{place}", "type": each} for place, each in enumerate(types)],
        }

    named = {
        "A": fields("B", "C"),
        "B": fields(["null", "D"]),
        "C": fields("int", "E"),
        "D": fields({"type": "array", "items": "B"}, "C"),
        "E": fields("int"),
        "F": fields("A", {"type": "map", "values": "F"}),
        "G": fields(["null", "H"], "H"),
        "H": fields("G"),
    }
    assert recursive_types(named) == {"B", "D", "F", "G", "H"}
    assert endless_types(named) == {"G", "H"}

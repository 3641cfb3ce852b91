"""`decode_frames` gives what fastavro reads, for schemas of any shape."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from avro_columns import columns_read, strictly_sound  # type: ignore[import-not-found]
from avro_typed_expected import Expected, read_by_fastavro  # type: ignore[import-not-found]
from avro_typed_shapes import cases, versions  # type: ignore[import-not-found]
from debezium_records import payload  # type: ignore[import-not-found]
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_lakehouse.avro import decode
from cdc_lakehouse.avro.decode import FramePlans, decode_frames
from cdc_lakehouse.avro.faults import RecordFault
from cdc_lakehouse.avro.unknown import UnknownSchemaIdsError, unknown_ids

GUID = UUID("89791762-2336-4186-9674-299b90a802e2")


def framed(schema_id: int, data: bytes) -> bytes:
    return b"\x00" + schema_id.to_bytes(4, "big") + data


def both_ways(frames: Sequence[bytes | None], plans: FramePlans, **columns: pa.Array) -> pa.RecordBatch:
    """As columns and one by one, which must be the same."""
    batch = pa.record_batch({"frame": pa.array(frames, pa.binary()), **columns})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode, "SMALL_GROUP", 1)
        as_columns = decode_frames(batch, plans)
        patch.setattr(decode, "SMALL_GROUP", len(batch) + 1)
        one_by_one = decode_frames(batch, plans)
    as_columns.validate(full=True)
    assert as_columns.schema == plans.schema
    for row in range(len(batch)):
        one, other = as_columns.slice(row, 1), one_by_one.slice(row, 1)
        # Python has no years beyond 9999, and a NaN is never equal.
        assert one.equals(other) or repr(one.to_pylist()) == repr(other.to_pylist())
    return as_columns


def loaded(value: Any, expected: Any) -> Any:
    """JSON texts loaded where JSON is expected."""
    if isinstance(value, str) and isinstance(expected, dict):
        return json.loads(value)
    if isinstance(value, dict) and isinstance(expected, dict):
        return {name: loaded(each, expected.get(name)) for name, each in value.items()}
    if isinstance(value, (list, tuple)) and isinstance(expected, (list, tuple)):
        return type(value)(map(loaded, value, expected))
    return value


@given(cases())
@settings(max_examples=60, deadline=None)
def test_values_are_those_that_fastavro_reads(case):
    schema, sent = case
    payloads = [payload(schema, each) for each in sent]
    found = both_ways([framed(3, each) for each in payloads], FramePlans.of({3: json.dumps(schema)}))
    expected = [Expected(schema).of(read_by_fastavro(schema, each)) for each in payloads]
    assert found.column("error").null_count == len(sent)
    assert [
        loaded(*pair) for pair in zip(found.column("value").to_pylist(), expected, strict=True)
    ] == expected


@given(versions())
@settings(max_examples=60, deadline=None)
def test_versions_of_a_record_meet_in_one_type(both):
    plans = FramePlans.of({number: json.dumps(schema) for number, (schema, _) in enumerate(both)})
    names = {field["name"]: None for schema, _ in both for field in schema["fields"]}
    assert plans.type.names == list(names)
    sent = [
        (number, schema, payload(schema, value))
        for number, (schema, values) in enumerate(both)
        for value in values
    ]
    found = both_ways([framed(number, data) for number, _, data in sent], plans)
    expected = [Expected(schema).of(read_by_fastavro(schema, data), wanted=names) for _, schema, data in sent]
    assert found.column("error").null_count == len(sent)
    assert [
        loaded(*pair) for pair in zip(found.column("value").to_pylist(), expected, strict=True)
    ] == expected


@given(cases(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_a_damaged_record_is_judged_alike(case, chance):
    schema, sent = case
    whole = payload(schema, sent[0])
    cut = [whole[: chance.randrange(len(whole) + 1)] for _ in range(8)]
    damaged = cut + [flipped(whole, chance) for _ in range(24)]
    both_ways([framed(3, each) for each in damaged], FramePlans.of({3: json.dumps(schema)}))
    _, sound = columns_read(schema, damaged)
    strict = [strictly_sound(schema, each) for each in damaged]
    # A map with a key twice is left to the strict reader.
    assert sound == strict or '"map"' in json.dumps(schema)
    assert all(there for there, taken in zip(strict, sound, strict=True) if taken)


def flipped(data: bytes, chance: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(chance.randrange(1, 3) if data else 0):
        found[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(found)


def record(**fields: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "R",
        "fields": [{"name": name, "type": each} for name, each in fields.items()],
    }


def told(found: pa.RecordBatch) -> list[Any]:
    """Values, or the codes of errors."""
    return [each["value"] if each["error"] is None else each["error"]["code"] for each in found.to_pylist()]


AB = record(a="int", b=["null", "string"])
WIDE = record(b="string", a="long", c=["null", {"type": "bytes", "logicalType": "decimal", "precision": 4}])


def test_a_batch_of_everything():
    plans = FramePlans.of({1: json.dumps(AB), 2: json.dumps(WIDE), GUID: json.dumps(AB)})
    one, two = payload(AB, {"a": 1, "b": "x"}), payload(WIDE, {"a": 2**40, "b": "y", "c": b"\x07"})
    frames = [framed(1, one), None, framed(2, two), b"\x01" + GUID.bytes + one, one, b"", one, framed(2, one)]
    headers = [None] * 6 + [b"\x01" + GUID.bytes, None]
    found = both_ways(frames, plans, id_header=pa.array(headers, pa.binary()))
    small, wide = {"a": 1, "b": "x", "c": None}, {"a": 2**40, "b": "y", "c": 7}
    assert told(found) == [small, None, wide, small, "bad_frame", "bad_frame", small, "bad_avro"]
    assert found.column("schema_id").to_pylist() == [1, None, 2, None, None, None, None, 2]
    guids = [None, None, None, str(GUID), None, None, str(GUID), None]
    assert found.column("schema_guid").to_pylist() == guids
    assert plans.type == pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.decimal128(4, 0))])


def test_a_schema_that_nobody_gave_fails_the_batch_by_name():
    plans = FramePlans.of({1: json.dumps(AB)})
    batch = pa.record_batch({"frame": [framed(7, b""), b"\x01" + GUID.bytes, framed(1, b"\x02\x00")]})
    with pytest.raises(UnknownSchemaIdsError) as caught:
        decode_frames(batch, plans)
    assert unknown_ids(str(caught.value)) == {7, GUID}


def test_types_that_do_not_meet_cost_only_the_records_that_need_it():
    older, newer = record(a="int", b="int"), record(a=["null", "string"], b="int")
    plans = FramePlans.of({1: json.dumps(older), 2: json.dumps(newer)})
    values = [{"a": None, "b": 1}, {"a": "x", "b": 1}]
    found = both_ways([framed(2, payload(newer, each)) for each in values], plans)
    assert told(found) == [{"a": None, "b": 1}, "incompatible_schema"]
    assert found.column("error")[1].as_py()["detail"] == "a: value is string, the column int32"


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def test_a_decimal_is_rescaled_only_without_loss():
    older, newer = record(a=decimal(6, 2)), record(a=decimal(6, 3))
    plans = FramePlans.of({1: json.dumps(older), 2: json.dumps(newer)})
    assert plans.type == pa.struct([("a", pa.decimal128(6, 2))])
    frames = [framed(2, payload(newer, {"a": number.to_bytes(3, "big")})) for number in (1230, 1234)]
    assert told(both_ways(frames, plans)) == [{"a": Decimal("1.23")}, "incompatible_schema"]


def test_nested_records_and_lists_meet_too():
    def outer(**inner: Any) -> dict[str, Any]:
        member = {**record(**inner), "name": "Inner"}
        return record(
            many={"type": "array", "items": member}, named={"type": "map", "values": ["null", "Inner"]}
        )

    older, newer = outer(a="int"), outer(b="string", a="long")
    plans = FramePlans.of({1: json.dumps(older), 2: json.dumps(newer)})
    one = {"many": [{"a": 1}], "named": {"x": None}}
    two = {"many": [{"a": 2, "b": "y"}], "named": {"x": {"a": 3, "b": "z"}}}
    found = both_ways([framed(1, payload(older, one)), framed(2, payload(newer, two))], plans)
    assert told(found) == [
        {"many": [{"a": 1, "b": None}], "named": [("x", None)]},
        {"many": [{"a": 2, "b": "y"}], "named": [("x", {"a": 3, "b": "z"})]},
    ]


def test_only_the_wanted_fields_are_there_and_all_are_checked():
    plans = FramePlans.of({1: json.dumps(AB), 2: json.dumps(WIDE)}, fields=("c", "b"))
    frames = [
        framed(1, payload(AB, {"a": 1, "b": "x"})),
        framed(1, b"\xff" * 12),
        framed(2, payload(WIDE, {"a": 2, "b": "y", "c": b"\x07"})),
    ]
    assert told(both_ways(frames, plans)) == [{"c": None, "b": "x"}, "bad_avro", {"c": 7, "b": "y"}]
    with pytest.raises(ValueError, match="no schema has the field z"):
        FramePlans.of({1: json.dumps(AB)}, fields=("z",))


def test_a_schema_that_is_refused_costs_only_its_records():
    endless = record(a="R")
    plans = FramePlans.of({1: json.dumps(endless), 2: json.dumps(AB)})
    found = both_ways([framed(1, b""), framed(2, payload(AB, {"a": 1, "b": None}))], plans)
    assert told(found) == ["incompatible_schema", {"a": 1, "b": None}]
    with pytest.raises(ValueError, match="none of the schemas"):
        FramePlans.of({1: json.dumps(record(a={**decimal(4, -1)}))})


@pytest.mark.parametrize(
    ("node", "type_"),
    [
        ({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 3}, pa.binary()),
        ({"type": "bytes", "logicalType": "decimal"}, pa.binary()),
        ({"type": "string", "logicalType": "decimal", "precision": 3}, pa.string()),
        ({"type": "int", "logicalType": "timestamp-millis"}, pa.int32()),
        ({"type": "fixed", "name": "F", "size": 15, "logicalType": "uuid"}, pa.binary()),
        ({"type": "long", "logicalType": "of-tomorrow"}, pa.int64()),
        ({"type": "long", "logicalType": 3}, pa.int64()),
        (decimal(39, 2), pa.string()),
        (["int"], pa.int32()),
        (["null"], pa.string()),
        ("null", pa.string()),
        ({"type": "record", "name": "E", "fields": []}, pa.bool_()),
        (
            {"type": "error", "name": "E", "fields": [{"name": "x", "type": "int"}]},
            pa.struct({"x": pa.int32()}),
        ),
        (["string", "null", "int"], pa.struct({"member0": pa.string(), "member1": pa.int32()})),
    ],
)
def test_the_type_of_a_field(node, type_):
    assert FramePlans.of({1: json.dumps(record(x=node))}).type == pa.struct({"x": type_})


@pytest.mark.parametrize("root", ["string", ["null", "long"], {"type": "array", "items": "double"}])
def test_a_root_may_be_of_any_type(root):
    value = {"string": "x"}.get(str(root), 7 if isinstance(root, list) else [0.5])
    found = both_ways([framed(1, payload(root, value)), framed(1, b"")], FramePlans.of({1: json.dumps(root)}))
    assert told(found) == [value, "truncated"]


def test_one_large_record_is_an_error_and_its_neighbours_are_not():
    plans = FramePlans.of({1: json.dumps(AB)}, max_record_bytes=50)
    frames = [framed(1, payload(AB, {"a": 1, "b": "x" * size})) for size in (1, 100)]
    assert told(both_ways(frames, plans)) == [{"a": 1, "b": "x"}, "record_too_large"]


def test_plans_can_be_sent_to_another_process():
    plans = pickle.loads(pickle.dumps(FramePlans.of({1: json.dumps(AB)})))  # noqa: S301
    batch = pa.record_batch({"frame": [framed(1, payload(AB, {"a": 1, "b": None}))]})
    assert told(decode_frames(batch, plans)) == [{"a": 1, "b": None}]


HOSTILE = {
    "an enum without symbols": ({"type": "enum", "name": "E", "symbols": []}, b"\x00", "bad_avro"),
    "a scale beyond 64 bits": (
        {"type": "bytes", "logicalType": "decimal", "precision": 10**30, "scale": 10**29},
        b"\x02\x01",
        "value_out_of_range",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_types_without_a_value_that_fits_cost_their_own_records_only(name):
    type_, data, code = HOSTILE[name]
    plans = FramePlans.of({1: json.dumps(record(a=type_)), 2: json.dumps(record(a="string"))})
    frames = [framed(1, data), framed(2, b"\x02x")]

    rows = both_ways(frames, plans)

    assert rows.column("error")[0].as_py()["code"] == code
    assert rows.column("error")[1].as_py() is None


def test_errors_of_one_schema_over_and_over_keep_nothing_of_their_batches():
    plans = FramePlans.of({1: '"int"', 2: "{}"})
    frames = pa.record_batch({"frame": pa.array([framed(2, b"")] * 3, pa.binary())})

    for _ in range(2):
        assert decode_frames(frames, plans).column("error").null_count == 0

    writer = plans.writer(2)
    assert isinstance(writer, RecordFault)
    assert writer.__traceback__ is None

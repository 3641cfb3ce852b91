"""What a few bytes may become: bounded for a record, bounded for a batch, and so for the worker's memory."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from debezium_records import (  # type: ignore[import-not-found]
    HEADERS,
    KEY_ID,
    VALUE_ID,
    decimal,
    envelope_schema,
    event,
    field,
    framed,
    kafka_batch,
    key_bytes,
    key_schema,
    plans,
    row,
    value_bytes,
)

from cdc_lakehouse.avro.output import BatchOutgrewError, limited_output
from cdc_lakehouse.debezium import decode as decoding
from cdc_lakehouse.debezium.columns import columns_of
from cdc_lakehouse.debezium.decode import decode, decode_in_parts
from cdc_lakehouse.debezium.headers import VALUE_SCHEMA_ID
from cdc_lakehouse.debezium.plans import DecodePlans

VARIABLE = {
    "type": "record",
    "name": "VariableScaleDecimal",
    "connect.name": "io.debezium.data.VariableScaleDecimal",
    "fields": [field("scale", "int"), field("value", "bytes")],
}
TINY = {"scale": 16_383, "value": b"\x01"}
"""Five bytes on the wire, 16,385 characters of text: four of them are a record's whole budget."""
ENTRY = {
    "type": "record",
    "name": "MapEntry",
    "fields": [field("key", "string"), field("value", ["null", VARIABLE])],
}
LONG_ENUM = {"type": "enum", "name": "Long", "symbols": ["x" * 1000]}


def record(**nodes: Any) -> dict[str, Any]:
    return {"type": "record", "name": "In", "fields": [field(name, node) for name, node in nodes.items()]}


def table(**nodes: Any) -> tuple[DecodePlans, Callable[..., bytes]]:
    """Plans of a table with these columns beside `id`, and what frames an event of it."""
    schema = envelope_schema([field("id", "long"), *(field(name, node) for name, node in nodes.items())])
    texts = {KEY_ID: json.dumps(key_schema()), VALUE_ID: json.dumps(schema)}
    made = DecodePlans("t", columns_of(*texts.values(), table="t"), texts)

    def framed_event(before: Any = None, **values: Any) -> bytes:
        whole = None if before is None else {"id": 1, **before}
        return bytes(framed(VALUE_ID, schema, event(before=whole, after={"id": 1, **values})))

    return made, framed_event


def errors(made: DecodePlans, *values: bytes) -> list[str | None]:
    batch = decode(kafka_batch(*((key_bytes(), value) for value in values)), made)
    batch.validate(full=True)
    return [error and error["code"] for error in batch.column("decode_error").to_pylist()]


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("count", [3, 4, 5])
def test_numbers_of_a_record_become_no_more_text_than_its_budget(count):
    made, event_of = table(
        d=["null", VARIABLE], **{f"d{place}": ["null", "VariableScaleDecimal"] for place in range(4)}
    )
    tiny = dict.fromkeys(["d", *(f"d{place}" for place in range(4))][:count], TINY)
    nothing = dict.fromkeys(["d", *(f"d{place}" for place in range(4))])

    found = errors(made, event_of(**(nothing | tiny)), event_of(**nothing))

    assert found == ["record_too_large" if count == 5 else None, None]


@pytest.mark.usefixtures("both_ways")
def test_the_row_before_and_the_row_after_have_one_budget():
    made, event_of = table(d=VARIABLE, e="VariableScaleDecimal", f="VariableScaleDecimal")
    small = {"scale": 2, "value": b"\x01"}
    full, light = dict.fromkeys("def", TINY), dict.fromkeys("def", small)

    assert errors(made, event_of(before=full, **full), event_of(before=light, **full)) == [
        "record_too_large",
        None,
    ]


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize(
    ("node", "value"),
    [
        ({"type": "array", "items": VARIABLE}, [TINY] * 40),
        ({"type": "array", "items": ["null", VARIABLE]}, [None, *[TINY] * 40]),
        ({"type": "map", "values": VARIABLE}, {f"k{place}": TINY for place in range(40)}),
        ({"type": "array", "items": ENTRY}, [{"key": f"k{place}", "value": TINY} for place in range(40)]),
        (record(x={"type": "array", "items": VARIABLE}), {"x": [TINY] * 40}),
        (["null", "int", VARIABLE], TINY),
        ({"type": "array", "items": decimal(20_000, 16_383)}, [b"\x01"] * 40),
        ({"type": "array", "items": LONG_ENUM}, ["x" * 1000] * 3_000),
        ({"type": "array", "items": record(s=LONG_ENUM)}, [{"s": "x" * 1000}] * 3_000),
    ],
    ids=["list", "nulls", "map", "entries", "struct", "union", "scale", "symbols", "symbols of records"],
)  # fmt: skip
def test_wherever_they_stand(node, value):
    """The union holds one, which is within the budget."""
    made, event_of = table(a=node)
    expected = None if value == TINY else "record_too_large"

    assert errors(made, event_of(a=value), event_of(a=value)) == [expected] * 2


@pytest.mark.usefixtures("both_ways")
def test_a_refused_record_costs_its_neighbours_nothing():
    made, event_of = table(d=VARIABLE, a={"type": "array", "items": "VariableScaleDecimal"})
    good, bad = event_of(d={"scale": 2, "value": b"\x07"}, a=[TINY]), event_of(d=TINY, a=[TINY] * 9)

    rows = decode(kafka_batch(*[(key_bytes(), value) for value in (good, bad) * 200]), made).to_pylist()

    assert [each["decode_error"] is None for each in rows] == [True, False] * 200
    assert {each["after"]["d"] for each in rows[::2]} == {"0.07"}
    assert {each["op"] for each in rows} == {"u"}
    assert rows[1]["decode_error"]["detail"] == "value: numbers that become 163890 characters of text"


@pytest.mark.usefixtures("both_ways")
def test_a_list_of_millions_of_values_is_too_large_however_long_its_record_is():
    members = [field("z", "boolean"), *(field(f"n{place}", "null") for place in range(15))]
    made, event_of = table(a={"type": "array", "items": {"type": "record", "name": "B", "fields": members}})
    item = {"z": True, **{f"n{place}": None for place in range(15)}}

    assert errors(made, event_of(a=[item] * 260_000)) == ["record_too_large"]


@pytest.mark.usefixtures("both_ways")
def test_a_batch_that_would_become_too_much_says_so_before_it_does():
    made, event_of = table(d=VARIABLE)
    batch = kafka_batch(*[(key_bytes(), event_of(d=TINY))] * 100)

    with limited_output(10**9):
        decode(batch, made)
    with pytest.raises(BatchOutgrewError), limited_output(10**6):
        decode(batch, made)


def parts_of(batch: pa.RecordBatch, made: DecodePlans) -> tuple[list[int], pa.Table]:
    parts = list(decode_in_parts(batch, made))
    assert pa.Table.from_batches([records for records, _ in parts]).equals(pa.Table.from_batches([batch]))
    return [len(rows) for _, rows in parts], pa.Table.from_batches([rows for _, rows in parts])


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("failure", [BatchOutgrewError, MemoryError, pa.ArrowCapacityError])
def test_what_is_too_much_at_once_is_decoded_in_parts(monkeypatch, failure):
    sound = (key_bytes(), value_bytes(event(after=row())))
    in_header = (key_bytes(), value_bytes(event(after=row()))[5:])
    batch = kafka_batch(*[sound, (key_bytes(), b"junk"), in_header, (None, None), sound] * 2)
    header = [{"key": VALUE_SCHEMA_ID, "value": b"\x00\x00\x00\x00\x09"}]
    headers = pa.array([None, None, header, None, []] * 2, HEADERS)
    batch = batch.set_column(batch.schema.get_field_index("headers"), "headers", headers)
    whole = decode(batch, plans())

    def bounded(records: pa.RecordBatch, made: DecodePlans) -> pa.RecordBatch:
        if len(records) > 3:
            raise failure("too much")
        return decode(records, made)

    monkeypatch.setattr(decoding, "decode", bounded)
    counts, rows = parts_of(batch, plans())

    assert counts == [2, 3, 2, 3]
    assert rows.equals(pa.Table.from_batches([whole]))


def test_a_single_record_that_is_too_much_is_no_reason_to_go_on_halving(monkeypatch):
    def fails(_records: pa.RecordBatch, _made: DecodePlans) -> pa.RecordBatch:
        raise MemoryError

    monkeypatch.setattr(decoding, "decode", fails)
    with pytest.raises(MemoryError):
        list(decode_in_parts(kafka_batch((key_bytes(), None), (key_bytes(), None)), plans()))


def test_other_failures_are_not_taken_for_a_lack_of_memory(monkeypatch):
    def fails(_records: pa.RecordBatch, _made: DecodePlans) -> pa.RecordBatch:
        raise pa.ArrowInvalid("something else")

    monkeypatch.setattr(decoding, "decode", fails)
    with pytest.raises(pa.ArrowInvalid):
        list(decode_in_parts(kafka_batch((key_bytes(), None), (key_bytes(), None)), plans()))


HOSTILE: dict[str, tuple[dict[str, Any], dict[str, Any], int]] = {
    "tiny numbers beyond the budget": (
        {"d": VARIABLE, **{f"d{place}": "VariableScaleDecimal" for place in range(180)}},
        dict.fromkeys(["d", *(f"d{place}" for place in range(180))], TINY),
        1_400,
    ),
    "tiny numbers within it": (
        {"d": VARIABLE, **{f"d{place}": "VariableScaleDecimal" for place in range(2)}},
        dict.fromkeys(["d", "d0", "d1"], TINY),
        10_000,
    ),
    "one record of many": ({"a": {"type": "array", "items": VARIABLE}}, {"a": [TINY] * 150_000}, 1),
    "long symbols": ({"a": {"type": "array", "items": LONG_ENUM}}, {"a": ["x" * 1000] * 100}, 10_000),
}


def largest_memory(name: str) -> int:
    """Of a process that decodes that batch part by part, in megabytes beyond what it had before."""
    peak = subprocess.run(
        [sys.executable, __file__, name],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path)},
        cwd=Path(__file__).parent,
    )
    return int(peak.stdout)


@pytest.mark.parametrize("name", HOSTILE)
def test_the_memory_of_a_worker_is_bounded_whatever_it_reads(name):
    """Without budgets the second takes 950 MB, the last 2,300, and the third more than a machine has."""
    assert largest_memory(name) < 700


def _decode_hostile(name: str) -> None:
    nodes, values, count = HOSTILE[name]
    made, event_of = table(**nodes)
    batch = kafka_batch(*[(key_bytes(), event_of(**values))] * count)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert sum(len(rows) for _, rows in decode_in_parts(batch, made)) == count
    sys.stdout.write(str((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024))


if __name__ == "__main__":
    _decode_hostile(sys.argv[1])

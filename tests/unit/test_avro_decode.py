"""`decode_frames` gives what fastavro reads, for schemas of any shape."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from avro_typed_shapes import (  # type: ignore[import-not-found]
    Expected,
    cases,
    read_by_fastavro,
    versions,
)
from debezium_records import payload  # type: ignore[import-not-found]
from hypothesis import given, settings

from cdc_lakehouse.avro import decode
from cdc_lakehouse.avro.decode import FramePlans, decode_frames

GUID = UUID("89791762-2336-4186-9674-299b90a802e2")


def framed(schema_id: int, data: bytes) -> bytes:
    return b"\x00" + schema_id.to_bytes(4, "big") + data


def both_ways(frames: list[bytes | None], plans: FramePlans, **columns: pa.Array) -> pa.RecordBatch:
    """As columns and one by one, which must be the same."""
    batch = pa.record_batch({"frame": pa.array(frames, pa.binary()), **columns})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode, "SMALL_GROUP", 1)
        as_columns = decode_frames(batch, plans)
        patch.setattr(decode, "SMALL_GROUP", len(batch) + 1)
        one_by_one = decode_frames(batch, plans)
    as_columns.validate(full=True)
    assert as_columns.schema == plans.schema
    for one, other in zip(as_columns.to_pylist(), one_by_one.to_pylist(), strict=True):
        assert repr(one) == repr(other)
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

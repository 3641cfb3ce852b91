"""Sound events that nobody can apply become rows with their reason and their bytes (`cdc-semantics` §1)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from debezium_records import (  # type: ignore[import-not-found]
    VALUE_ID,
    columns,
    envelope_schema,
    event,
    field,
    framed,
    kafka_batch,
    key_bytes,
    optional,
    plans,
    row,
    value_bytes,
)

from cdc_lakehouse.debezium.decode import decode

ROW = row(note="x")
NOWHERE = {"lsn": None, "sequence": None}


pytestmark = pytest.mark.usefixtures("both_ways")


def decoded(key: bytes | None, value: Any, **told: Any) -> dict[str, Any]:
    data = value_bytes(value)
    (found,) = decode(kafka_batch((key, data)), plans(**told)).to_pylist()
    assert (found["raw_key"], found["raw_value"]) in ((key, data), (None, None))
    return dict(found)


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        (
            key_bytes(),
            event("zz", after=ROW),
            {"code": "unknown_operation", "detail": "value: op is none of c, u, d, r, t, m"},
        ),
        (
            key_bytes(),
            event("", after=ROW),
            {"code": "unknown_operation", "detail": "value: op is none of c, u, d, r, t, m"},
        ),
        (
            None,
            event("d", before=ROW),
            {"code": "missing_key", "detail": "key: null, in a table with a key"},
        ),
        (
            key_bytes(),
            event("u", after=ROW, **NOWHERE),
            {"code": "missing_position", "detail": "value: source does not tell where the event stands"},
        ),
        (
            None,
            event("t", **NOWHERE),
            {"code": "missing_position", "detail": "value: source does not tell where the event stands"},
        ),
        (
            key_bytes(),
            event("r", before=ROW),
            {"code": "missing_after", "detail": "value: after is null"},
        ),
    ],
)
def test_an_event_that_cannot_be_applied_says_why_and_keeps_its_bytes(key, value, error):
    found = decoded(key, value)

    assert found["decode_error"] == error
    assert (found["raw_key"], found["raw_value"]) == (key, value_bytes(value))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, event("t")),
        (None, event("m")),
        (key_bytes(), event("m", **NOWHERE)),
        (key_bytes(), event("d")),
        (key_bytes(), event("d", before=ROW)),
    ],
)
def test_what_an_operation_lacks_by_nature_is_no_fault(key, value):
    assert decoded(key, value)["decode_error"] is None


def test_a_tombstone_without_a_key_is_no_event_and_no_fault():
    (found,) = decode(kafka_batch((None, None)), plans()).to_pylist()

    assert found["decode_error"] is None


def test_what_is_known_of_such_an_event_stays_but_for_its_values():
    found = decoded(key_bytes(5), event("z", before=ROW, after=row(note="__debezium_unavailable_value")))

    assert (found["op"], found["key"], found["source"]["lsn"]) == ("z", {"id": 5}, 26002808)
    assert (found["position"]["row"], found["transaction"]["total_order"]) == (26002808, 2)
    assert [found[name] for name in ("before", "after", "unavailable")] == [None, None, None]


def test_a_value_out_of_range_is_not_told_of_a_row_that_is_not_shown():
    value = event("z", after=row(placed_on=2146033979))

    found = decoded(key_bytes(), value, null_if_out_of_range=True)

    assert (found["decode_error"]["code"], found["out_of_range"]) == ("unknown_operation", None)


def test_a_fault_of_the_record_itself_is_told_before_all():
    found = decoded(None, event("z", after=row(placed_on=2146033979)))

    assert found["decode_error"]["code"] == "value_out_of_range"


def test_of_several_reasons_the_first_is_told():
    assert decoded(None, event("c", **NOWHERE))["decode_error"]["code"] == "missing_key"


def test_an_operation_that_is_null_is_unknown():
    schema = envelope_schema([field("id", "long")])
    for each in schema["fields"]:
        if each["name"] == "op":
            each.update(optional("string"))
    value = framed(VALUE_ID, schema, {**event(after={"id": 1}), "op": None})
    known = plans(columns=columns(schema), schemas={**plans().schemas, VALUE_ID: json.dumps(schema)})

    (found,) = decode(kafka_batch((key_bytes(), value)), known).to_pylist()

    assert (found["decode_error"]["code"], found["source"]["lsn"]) == ("unknown_operation", 26002808)


def test_the_neighbours_of_such_events_are_as_without_them():
    good, bad = (key_bytes(), value_bytes(event(after=ROW))), (None, value_bytes(event(after=ROW)))

    mixed = decode(kafka_batch(good, bad, good, bad), plans()).to_pylist()

    alone = decode(kafka_batch(good, good, good), plans()).to_pylist()
    assert (mixed[0], mixed[2]) == (alone[0], alone[2])
    assert [each["decode_error"] and each["decode_error"]["code"] for each in mixed] == [
        None,
        "missing_key",
        None,
        "missing_key",
    ]


def test_in_a_table_without_a_key_a_null_key_is_no_fault():
    keyless = replace(columns(), key=())

    found = decoded(None, event("c", after=ROW), columns=keyless)

    assert (found["decode_error"], found["after"]["note"], "key" in found) == (None, "x", False)

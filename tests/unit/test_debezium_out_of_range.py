"""What becomes of values that their column cannot hold (`cdc-semantics` §7, `out_of_range`)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from debezium_damage import (  # type: ignore[import-not-found]
    FULL_ROW,
    decoded_both_ways,
    first_difference,
    told,
)
from debezium_damage import key_bytes as wide_key_bytes
from debezium_damage import value_bytes as wide_value_bytes
from debezium_records import (  # type: ignore[import-not-found]
    VALUE_SCHEMA,
    columns,
    event,
    framed,
    key_schema,
    plans,
    row,
    semantic,
    value_bytes,
)

KEY_ID, VALUE_ID = 7, 9
INFINITY = 2_146_033_979
FAR = row(note="kept", placed_on=INFINITY, changed_at="infinity")


def key_bytes(day: int) -> bytes:
    return bytes(framed(KEY_ID, key_schema(DATE), {"id": day}))


DATE = semantic("int", "io.debezium.time.Date")
DATE_KEYS = plans(
    columns=columns(key=key_schema(DATE)),
    schemas={KEY_ID: json.dumps(key_schema(DATE)), VALUE_ID: json.dumps(VALUE_SCHEMA)},
)


def decoded(*records: tuple[bytes | None, bytes | None], tolerant: bool) -> list[dict[str, Any]]:
    known = plans(columns=DATE_KEYS.columns, schemas=DATE_KEYS.schemas, null_if_out_of_range=tolerant)
    found = decoded_both_ways(records, known)
    assert first_difference(found) is None
    rows: list[dict[str, Any]] = found[0].to_pylist()
    return rows


def test_by_default_the_record_is_undecodable():
    (found,) = decoded((key_bytes(1), value_bytes(event(after=FAR))), tolerant=False)
    assert found["decode_error"] == {
        "code": "value_out_of_range",
        "detail": "value: after: placed_on: date outside the years 1 to 9999, or infinity",
    }
    assert (found["after"], found["out_of_range"]) == (None, None)


def test_as_null_the_other_values_stay_and_the_columns_are_named():
    found, near = decoded(
        (key_bytes(1), value_bytes(event(after=FAR))),
        (key_bytes(2), value_bytes(event(after=row(note="near", placed_on=1)))),
        tolerant=True,
    )
    assert found["decode_error"] is None
    assert (found["after"]["note"], found["after"]["placed_on"], found["after"]["changed_at"]) == (
        "kept",
        None,
        None,
    )
    assert found["out_of_range"] == ["placed_on", "changed_at"]
    assert (near["after"]["note"], near["out_of_range"]) == ("near", None)


def test_a_column_that_is_out_of_range_before_and_after_is_named_once():
    (found,) = decoded((key_bytes(1), value_bytes(event(before=FAR, after=FAR))), tolerant=True)
    assert found["before"]["note"] == "kept"
    assert found["out_of_range"] == ["placed_on", "changed_at"]


def test_a_key_out_of_range_is_undecodable_whatever_the_table_says():
    (found,) = decoded((key_bytes(INFINITY), value_bytes(event(after=row()))), tolerant=True)
    assert found["decode_error"]["code"] == "value_out_of_range"
    assert found["key"] is None


def test_a_value_that_is_wrong_is_undecodable_and_nothing_is_named():
    wrong = {**FAR, "changed_at": "yesterday"}
    (found,) = decoded((key_bytes(1), value_bytes(event(after=wrong))), tolerant=True)
    assert found["decode_error"]["code"] == "bad_value"
    assert (found["after"], found["out_of_range"]) == (None, None)


@pytest.mark.parametrize("tolerant", [False, True])
def test_an_item_out_of_range_makes_its_whole_list_so(tolerant):
    value = event(after={**FULL_ROW, "days": [1, INFINITY]})
    found = decoded_both_ways(
        [(wide_key_bytes(), wide_value_bytes(value))], told(null_if_out_of_range=tolerant)
    )
    assert first_difference(found) is None
    (record,) = found[0].to_pylist()
    assert (record["decode_error"] is None) is tolerant
    assert record["out_of_range"] == (["days"] if tolerant else None)

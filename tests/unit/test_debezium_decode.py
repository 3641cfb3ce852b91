"""Kafka records in, bronze rows out: whatever the bytes are."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from debezium_records import (  # type: ignore[import-not-found]
    FULL,
    KEY_ID,
    columns,
    decimal,
    envelope_schema,
    event,
    field,
    framed,
    kafka_batch,
    key_bytes,
    key_schema,
    optional,
    plans,
    row,
    value_bytes,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_lakehouse.avro.unknown import UnknownSchemaIdsError
from cdc_lakehouse.debezium.bronze import bronze_schema
from cdc_lakehouse.debezium.columns import evolve, evolve_leniently
from cdc_lakehouse.debezium.decode import decode

pytestmark = pytest.mark.usefixtures("both_ways")
FULL_FINAL = {
    "id": 1,
    "note": "hällo",
    "total": Decimal("-123.45"),
    "placed_on": date(2022, 1, 8),
    "changed_at": datetime(2024, 2, 29, 21, 59, 59, 123456, tzinfo=UTC),
    "rank": -3,
    "photo": b"\x00\xff",
    "tags": ["a", None],
}


def decoded(*records: tuple[bytes | None, bytes | None], **changes: Any) -> list[dict[str, Any]]:
    batch = decode(kafka_batch(*records), plans(**changes))
    batch.validate(full=True)
    rows: list[dict[str, Any]] = batch.to_pylist()
    return rows


def test_an_update_becomes_one_whole_bronze_row():
    (found,) = decoded((key_bytes(), value_bytes(event(after=FULL))))
    assert found == {
        "topic": "shop.public.orders",
        "partition": 0,
        "offset": 100,
        "topic_id": "id1",
        "kafka_timestamp": datetime(2023, 11, 14, 22, 13, 21, tzinfo=UTC),
        "key_schema_id": 7,
        "value_schema_id": 9,
        "op": "u",
        "position": {
            "phase": 1,
            "commit": 26002768,
            "streamed": 1,
            "row": 26002808,
            "order_in_tx": 2,
            "kind": 1,
        },
        "key": {"id": 1},
        "before": None,
        "after": FULL_FINAL,
        "unavailable": None,
        "out_of_range": None,
        "source": {
            "connector": "postgresql",
            "version": "3.7.0.Final",
            "name": "shop",
            "snapshot": "false",
            "ts": datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC),
            "db": "shop",
            "schema": "public",
            "table": "orders",
            "sequence": '["26002768","26002808"]',
            "tx_id": 811,
            "lsn": 26002808,
            "file": None,
            "pos": None,
            "row": None,
            "gtid": None,
        },
        "transaction": {"id": "811:26002808", "total_order": 2, "data_collection_order": 1},
        "headers": None,
        "decode_error": None,
        "raw_key": None,
        "raw_value": None,
    }


def test_the_batch_has_the_bronze_schema_of_the_table():
    assert decode(kafka_batch(), plans()).schema == bronze_schema(columns())


def test_a_tombstone_keeps_its_key_and_is_no_error():
    (found,) = decoded((key_bytes(5), None))
    assert (found["key"], found["op"], found["decode_error"], found["value_schema_id"]) == (
        {"id": 5},
        None,
        None,
        None,
    )


def test_a_truncate_without_key_decodes():
    (found,) = decoded((None, value_bytes(event("t"))))
    assert (found["op"], found["key"], found["after"], found["decode_error"]) == ("t", None, None, None)


def test_a_delete_stands_before_the_create_of_the_same_place():
    (found,) = decoded((key_bytes(), value_bytes(event("d", before=row()))))
    assert found["position"]["kind"] == 0
    assert found["before"]["id"] == 1


@pytest.mark.parametrize("value", [event(after=FULL), event("d", before=row()), event("c", after=row())])
def test_every_truncation_is_undecodable_and_costs_the_neighbours_nothing(value):
    whole = value_bytes(value)
    found = decoded(*((key_bytes(), whole[:end]) for end in range(len(whole))), (key_bytes(), whole))
    assert all(each["decode_error"] is not None for each in found[:-1])
    assert [each["raw_value"] for each in found[:-1]] == [whole[:end] for end in range(len(whole))]
    assert all(each["key"] == {"id": 1} for each in found)
    assert found[-1]["decode_error"] is None


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"", {"code": "bad_frame", "detail": "value: no bytes at all"}),
        (b"\x01rest", {"code": "bad_frame", "detail": "value: 5 bytes, a frame has at least 17"}),
        (
            value_bytes(event(after=row())) + b"\x00\x00",
            {"code": "trailing_bytes", "detail": "value: 2 bytes after the last field"},
        ),
        (
            value_bytes(event(after=row(note="ab"))).replace(b"\x04ab", b"\x04\xff\xfe"),
            {"code": "invalid_utf8", "detail": "value: after: note: string that is not UTF-8"},
        ),
        (
            b"\x00\x00\x00\x00\x09\x01",
            {"code": "bad_avro", "detail": "value: before: union branch that the schema does not have"},
        ),
        (
            value_bytes(event(after=row(placed_on=2146033979))),
            {
                "code": "value_out_of_range",
                "detail": "value: after: placed_on: date outside the years 1 to 9999, or infinity",
            },
        ),
        (
            value_bytes(event(after=row(changed_at="infinity"))),
            {"code": "value_out_of_range", "detail": "value: after: changed_at: timestamp is infinity"},
        ),
        (
            value_bytes(event(after=row(total=(10**10).to_bytes(5, "big", signed=True)))),
            {"code": "value_out_of_range", "detail": "value: after: total: decimal of more than 10 digits"},
        ),
    ],
)
def test_an_undecodable_value_says_where_and_why_but_never_what(value, error):
    (found,) = decoded((key_bytes(), value))
    assert found["decode_error"] == error
    assert (found["raw_key"], found["raw_value"]) == (key_bytes(), value)
    assert found["after"] is None


def test_a_record_beyond_the_cap_is_undecodable():
    (found,) = decoded((key_bytes(), value_bytes(event(after=row(note="x" * 500)))), max_record_bytes=300)
    assert found["decode_error"]["code"] == "record_too_large"
    assert found["raw_value"] is not None


def test_raw_always_keeps_the_bytes_of_good_records():
    (found,) = decoded((key_bytes(), None), keep_raw=True)
    assert (found["raw_key"], found["raw_value"]) == (key_bytes(), None)


def test_an_unknown_schema_id_fails_the_whole_batch():
    good, strange = (key_bytes(), value_bytes(event())), (key_bytes(), framed(77, key_schema(), {"id": 1}))
    with pytest.raises(UnknownSchemaIdsError) as caught:
        decoded(good, strange)
    assert (caught.value.keys, caught.value.values) == (frozenset(), frozenset({77}))


def test_a_schema_that_is_no_envelope_makes_its_records_undecodable():
    (found,) = decoded((key_bytes(), framed(KEY_ID, key_schema(), {"id": 1})))
    assert found["decode_error"]["code"] == "not_an_envelope"


def test_the_placeholder_becomes_null_and_its_columns_are_named():
    mark = "__debezium_unavailable_value"
    (found,) = decoded(
        (key_bytes(), value_bytes(event(after=row(note=mark, photo=mark.encode(), tags=[mark], rank=4))))
    )
    assert found["unavailable"] == ["note", "photo", "tags"]
    assert [found["after"][name] for name in ("note", "photo", "tags", "rank")] == [None, None, None, 4]


def test_rows_of_old_and_new_schemas_meet_in_the_evolved_columns():
    old = envelope_schema([field("id", "int"), field("gone", optional("string"))])
    new = envelope_schema([field("id", "long"), field("added", optional("double"))])
    table = evolve(columns(old), columns(new), table="orders")
    schemas = {KEY_ID: json.dumps(key_schema()), 1: json.dumps(old), 2: json.dumps(new)}
    found = decoded(
        (key_bytes(), framed(1, old, event(after={"id": 1, "gone": "x"}))),
        (key_bytes(), framed(2, new, event(after={"id": 2**40, "added": 0.5}))),
        columns=table,
        schemas=schemas,
    )
    assert [each["after"] for each in found] == [
        {"id": 1, "gone": "x", "added": None},
        {"id": 2**40, "gone": None, "added": 0.5},
    ]


def test_a_value_that_fits_no_evolved_column_is_undecodable_and_a_null_is_not():
    new = envelope_schema([field("id", "long"), field("note", optional(decimal(4, 1)))])
    table = evolve_leniently(columns(), columns(new))
    schemas = {KEY_ID: json.dumps(key_schema()), 2: json.dumps(new)}
    found = decoded(
        (key_bytes(), framed(2, new, event(after={"id": 1, "note": b"\x05"}))),
        (key_bytes(), framed(2, new, event(after={"id": 2, "note": None}))),
        columns=table,
        schemas=schemas,
    )
    assert [each["decode_error"] and each["decode_error"]["code"] for each in found] == [
        "incompatible_schema",
        None,
    ]


def test_plans_travel_to_workers():
    assert pickle.loads(pickle.dumps(plans())) == plans()  # noqa: S301


def test_input_with_large_binary_columns_decodes():
    batch = kafka_batch((key_bytes(), None))
    large = batch.set_column(0, "key", batch.column("key").cast(pa.large_binary()))
    assert decode(large, plans()).to_pylist()[0]["key"] == {"id": 1}


rows = st.fixed_dictionaries(
    {
        "id": st.integers(-(2**63), 2**63 - 1),
        "note": st.none() | st.text(),
        "total": st.none() | st.integers(-(10**10) + 1, 10**10 - 1),
        "placed_on": st.none() | st.dates(),
        "changed_at": st.none() | st.datetimes(timezones=st.just(UTC)),
        "rank": st.none() | st.integers(-(2**15), 2**15 - 1),
        "photo": st.none() | st.binary(),
        "tags": st.none() | st.lists(st.none() | st.text(), max_size=4),
    }
)


def written(values: dict[str, Any]) -> dict[str, Any]:
    total, day, moment = values["total"], values["placed_on"], values["changed_at"]
    return {
        **values,
        "total": None if total is None else total.to_bytes(5, "big", signed=True),
        "placed_on": None if day is None else day.toordinal() - date(1970, 1, 1).toordinal(),
        "changed_at": None if moment is None else moment.isoformat().replace("+00:00", "Z"),
    }


@given(st.lists(rows, min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_what_was_encoded_is_what_is_stored(sent):
    found = decoded(*((key_bytes(), value_bytes(event(after=written(each)))) for each in sent))
    assert [each["decode_error"] for each in found] == [None] * len(sent)
    assert [each["after"] for each in found] == [
        {**each, "total": None if each["total"] is None else Decimal(each["total"]).scaleb(-2)}
        for each in sent
    ]


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_no_bytes_whatever_raise(noise):
    (found,) = decoded((key_bytes(), b"\x00\x00\x00\x00\x09" + noise))
    assert found["raw_value"] is None or found["decode_error"] is not None

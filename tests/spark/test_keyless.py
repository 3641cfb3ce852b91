"""Tables whose topics have no schema of a key: bronze takes them, silver has a row per event."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from chain import Chain  # type: ignore[import-not-found]
from orders import OLD, ORDERS, TOPIC, know, order, truncate  # type: ignore[import-not-found]

from cases.encoding import KafkaRecord  # type: ignore[import-not-found]
from cdc_lakehouse.config.models import Mode
from cdc_lakehouse.contract import TableStatus
from cdc_lakehouse.errors import KeylessUpsertError, KeySchemaDriftError
from unit.debezium_records import framed  # type: ignore[import-not-found]

KEY_ID, VALUE_ID = OLD.key_id, OLD.value_id


@pytest.fixture
def keyless(chain: Chain) -> Chain:
    chain.registry.register(TOPIC, keys={}, values={VALUE_ID: OLD.schemas[VALUE_ID]})
    return chain


def without_key(record: KafkaRecord) -> KafkaRecord:
    return replace(record, key=None)


def events(chain: Chain) -> list[tuple[str, int, str]]:
    rows = sorted(chain.silver(ORDERS), key=lambda row: row["_cdc_position"]["row"])
    return [(row["_cdc_op"], row["id"], row["note"]) for row in rows]


def test_bronze_of_a_table_without_a_key_has_its_rows_and_no_key(keyless):
    keyless.ingest(ORDERS, [without_key(order(0, 1, note="one"))])
    keyless.ingest(ORDERS, [without_key(order(1, 1, op="u", note="two"))])

    rows = keyless.bronze(ORDERS)

    assert [(row["op"], row["after"]["note"], row["decode_error"]) for row in rows] == [
        ("c", "one", None),
        ("u", "two", None),
    ]
    assert "key" not in rows[0]


def test_silver_of_a_table_without_a_key_has_a_row_per_event(keyless):
    keyless.ingest(ORDERS, [without_key(order(0, 1, note="one"))])
    keyless.ingest(ORDERS, [without_key(order(1, 1, op="u", note="two"))])

    keyless.merge(ORDERS)

    assert events(keyless) == [("c", 1, "one"), ("u", 1, "two")]


def test_silver_of_a_table_without_a_key_cannot_have_a_row_per_key(keyless):
    keyless.ingest(ORDERS, [without_key(order(0, 1, note="one"))])

    with pytest.raises(KeylessUpsertError) as caught:
        keyless.merge(ORDERS.model_copy(update={"mode": Mode.UPSERT}))

    assert caught.value.table == "orders"


@pytest.mark.parametrize("merged_before", [True, False])
def test_a_table_that_gets_a_key_stops_its_silver_unless_it_has_a_row_per_event(keyless, merged_before):
    keyless.ingest(ORDERS, [without_key(order(0, 1, note="one"))])
    if merged_before:
        keyless.merge(ORDERS)
    know(keyless)
    keyless.ingest(ORDERS, [order(1, 1, op="u", note="two")])

    with pytest.raises(KeySchemaDriftError) as caught:
        keyless.merge(ORDERS)

    assert (caught.value.table, caught.value.was) == ("orders", "no columns")
    keyless.merge(ORDERS.model_copy(update={"mode": Mode.APPEND}))
    assert events(keyless) == [("c", 1, "one"), ("u", 1, "two")]


def test_silver_of_a_table_that_was_only_truncated_waits_for_its_first_row(keyless):
    keyless.ingest(ORDERS, [truncate(0)])
    waiting = keyless.merge(ORDERS)
    know(keyless)
    keyless.ingest(ORDERS, [order(1, 1, note="one")])

    result = keyless.merge(ORDERS)

    assert (waiting.status, result.status) == (TableStatus.IDLE, TableStatus.ADVANCED)
    assert [(row["id"], row["note"]) for row in keyless.silver(ORDERS)] == [(1, "one")]


def test_a_table_that_was_truncated_before_its_first_row_gets_its_key(keyless):
    keyless.ingest(ORDERS, [truncate(0)])
    know(keyless)

    keyless.ingest(ORDERS, [order(1, 1, note="one")])

    rows = keyless.bronze(ORDERS)
    assert [(row["op"], row["key"], row["decode_error"]) for row in rows] == [
        ("t", None, None),
        ("c", {"id": 1}, None),
    ]


def test_a_strange_key_makes_no_table_without_a_key_keyed(keyless):
    strange = {**json.loads(OLD.schemas[KEY_ID]), "namespace": "shop.public.other"}
    keyless.registry.hidden = {901: json.dumps(strange)}

    keyless.ingest(
        ORDERS,
        [
            without_key(order(0, 1, note="one")),
            replace(order(1, 2), key=framed(901, strange, {"id": 2})),
        ],
    )

    rows = keyless.bronze(ORDERS)
    assert [row["decode_error"] and row["decode_error"]["code"] for row in rows] == [None, "wrong_schema"]
    assert "key" not in rows[0]


def test_a_key_that_a_record_names_is_the_key_of_its_whole_batch(keyless):
    keyless.ingest(ORDERS, [truncate(0)])
    keyless.registry.hidden = {KEY_ID: OLD.schemas[KEY_ID]}

    keyless.ingest(ORDERS, [without_key(order(1, 1, note="one")), order(2, 2, note="two")])

    rows = keyless.bronze(ORDERS)
    assert [(row["key"], row["decode_error"] and row["decode_error"]["code"]) for row in rows] == [
        (None, None),
        (None, "missing_key"),
        ({"id": 2}, None),
    ]

"""Tables whose topics have no schema of a key: bronze takes them, silver says that it does not yet."""

from __future__ import annotations

from dataclasses import replace

import pytest
from chain import Chain  # type: ignore[import-not-found]
from orders import OLD, ORDERS, TOPIC, know, order, truncate  # type: ignore[import-not-found]

from cases.encoding import KafkaRecord  # type: ignore[import-not-found]
from cdc_lakehouse.errors import NotSupportedYetError

KEY_ID, VALUE_ID = OLD.key_id, OLD.value_id


@pytest.fixture
def keyless(chain: Chain) -> Chain:
    chain.registry.register(TOPIC, keys={}, values={VALUE_ID: OLD.schemas[VALUE_ID]})
    return chain


def without_key(record: KafkaRecord) -> KafkaRecord:
    return replace(record, key=None)


def test_bronze_of_a_table_without_a_key_has_its_rows_and_no_key(keyless):
    keyless.ingest(ORDERS, [without_key(order(0, 1, note="one"))])
    keyless.ingest(ORDERS, [without_key(order(1, 1, op="u", note="two"))])

    rows = keyless.bronze(ORDERS)

    assert [(row["op"], row["after"]["note"], row["decode_error"]) for row in rows] == [
        ("c", "one", None),
        ("u", "two", None),
    ]
    assert "key" not in rows[0]


def test_silver_of_a_table_without_a_key_says_that_it_is_not_supported(keyless):
    keyless.ingest(ORDERS, [without_key(order(0, 1, note="one"))])

    with pytest.raises(NotSupportedYetError, match="silver of orders, a table without a key"):
        keyless.merge(ORDERS)


def test_a_table_that_was_truncated_before_its_first_row_gets_its_key(keyless):
    keyless.ingest(ORDERS, [truncate(0)])
    know(keyless)

    keyless.ingest(ORDERS, [order(1, 1, note="one")])

    rows = keyless.bronze(ORDERS)
    assert [(row["op"], row["key"], row["decode_error"]) for row in rows] == [
        ("t", None, None),
        ("c", {"id": 1}, None),
    ]


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

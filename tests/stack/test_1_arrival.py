"""Rows of PostgreSQL arrive in silver: the first ones, then changes, a new column and a bad record."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer
from driver import GREEN, rows  # type: ignore[import-not-found]

from cdc_lakehouse.contract import Job


@pytest.fixture(scope="module")
def first(chain):
    chain.stack.connector.wait_until_captured()
    return chain.run()


@pytest.fixture(scope="module")
def second(chain, first):
    chain.change(
        "ALTER TABLE customers ADD COLUMN nickname text",
        "INSERT INTO customers VALUES (901, 'New', NULL, 1.50, true, '{\"b\": 1.0, \"a\": []}', NULL,"
        " '2026-05-01T10:00:00+02:00', NULL, '')",
        "INSERT INTO customers (id, name, balance, active, created_at) VALUES (902, '', 0, false, now())",
        "UPDATE customers SET balance = balance + 1, nickname = 'Oma' WHERE id <= 5",
        "DELETE FROM customers WHERE id = 6",
    )
    chain.change("DELETE FROM order_lines WHERE order_id = 1", "UPDATE orders SET note = '' WHERE id = 2")
    chain.change(
        "INSERT INTO vouchers VALUES ('AGAIN', 1, NULL)",
        "DELETE FROM vouchers WHERE code = 'AGAIN'",
        "INSERT INTO vouchers VALUES ('AGAIN', 2, '0001-01-01')",
    )
    _produce(chain, "shop.public.products", b"no Avro at all")
    chain.change("UPDATE products SET price = 9.99, released = NULL WHERE id = 1")
    return chain.run()


def test_the_first_run_is_green(first):
    assert (first.state, first.states) == ("success", GREEN)


def test_changes_a_new_column_and_a_bad_record_do_not_stop_a_run(second):
    assert (second.state, second.states) == ("success", GREEN)


def test_every_silver_table_equals_its_source(chain, second):
    assert chain.differences() == []


def test_the_run_itself_has_found_so(chain, second):
    tables = ("customers", "orders", "order_lines", "products", "vouchers")

    assert [chain.report(Job.VERIFY, table).word for table in tables] == ["equal"] * 5


def test_rows_carry_their_new_column_and_nothing_becomes_something(chain, second):
    found = rows(
        chain.silver("customers"), ("id", "name", "email", "nickname"), lambda row: row["id"] in (1, 901, 902)
    )

    assert sorted(found) == [
        (1, "Customer 1", "customer1@example.org", "Oma"),
        (901, "New", None, ""),
        (902, "", None, None),
    ]


def test_a_record_that_is_no_avro_is_a_bronze_row_with_its_bytes(chain, second):
    bad = rows(
        chain.bronze("products"), ("raw_value", "op", "after"), lambda row: row["decode_error"] is not None
    )

    assert bad == [(b"no Avro at all", None, None)]


def test_the_report_counts_the_bad_record_beside_the_good_one(chain, second):
    counts = chain.report(Job.BRONZE_INGEST, "products").counts

    assert (counts["appended"], counts["undecodable"]) == (2, 1)


def test_the_merge_tells_what_it_left_out(chain, second):
    assert chain.report(Job.SILVER_MERGE, "products").counts["undecodable"] == 1


def _produce(chain, topic: str, value: bytes) -> None:
    producer = Producer(chain.stack.kafka.client_settings())
    producer.produce(topic, value=value)
    assert producer.flush(10) == 0

"""The demo's source database: its tables, its first rows, and changes like those of a real shop."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import psycopg
from psycopg import sql

SIGNAL_TABLE = "debezium_signal"
_SCHEMA = Path(__file__).with_name("shop.sql")
_BEGIN = datetime(2026, 1, 1, 8, 0, tzinfo=UTC)
_STATUSES = ("new", "paid", "packed", "shipped", "returned")
_WORDS = ("leave at the door", "Geschenk für Oma", "ring twice", "緊急", "fragile 🍷", "")

Connection = psycopg.Connection[Any]


def create_tables(connection: Connection) -> None:
    """Does nothing to tables that are there."""
    connection.execute(_SCHEMA.read_text(encoding="utf-8").encode())
    connection.commit()


def publish_all_tables(connection: Connection, name: str) -> None:
    """Tables that are created later too; only a superuser may. A publication of chosen tables is replaced."""
    row = connection.execute("SELECT puballtables FROM pg_publication WHERE pubname = %s", (name,)).fetchone()
    if row != (True,):
        publication = sql.Identifier(name)
        connection.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(publication))
        connection.execute(sql.SQL("CREATE PUBLICATION {} FOR ALL TABLES").format(publication))
    connection.commit()


def let_connector_read(connection: Connection, role: str) -> None:
    """Every table of this user in `public`, those that it creates later too: a snapshot needs SELECT."""
    name = sql.Identifier(role)
    connection.execute(sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA public TO {}").format(name))
    connection.execute(
        sql.SQL("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO {}").format(name)
    )
    connection.commit()


def let_verifier_send_signals(connection: Connection, role: str) -> None:
    """The repair `resync` asks for snapshots with the connection that `verify` reads by."""
    grant = sql.SQL("GRANT INSERT ON {} TO {}")
    connection.execute(grant.format(sql.Identifier(SIGNAL_TABLE), sql.Identifier(role)))
    connection.commit()


def seed(connection: Connection, *, customers: int = 200, products: int = 50, orders: int = 300) -> None:
    """The same first rows each time; a database that has customers already is left as it is."""
    if connection.execute("SELECT EXISTS (SELECT FROM customers)").fetchone() == (True,):
        connection.rollback()
        return
    connection.commit()
    rng = Random(1)  # noqa: S311 - repeatable, not secret
    with connection.transaction():
        for number in range(1, products + 1):
            _insert_product(connection, rng, number)
        for number in range(1, customers + 1):
            _insert_customer(connection, rng, number)
        for code, percent in (("WELCOME", 10), ("SPRING", 15), ("STAFF", 30)):
            connection.execute(
                "INSERT INTO vouchers VALUES (%s, %s, %s)", (code, percent, date(2030, 12, 31))
            )
    for _ in range(orders):
        with connection.transaction():
            _place_order(connection, rng)


def change(connection: Connection, rng: Random, *, transactions: int) -> int:
    """Run this many transactions of several statements; returns how many were committed."""
    committed = 0
    actions = (
        _place_order,
        _advance_order,
        _edit_customer,
        _remove_order,
        _new_customer,
        _reprice,
        _remove_customer,
    )
    weights = (30, 30, 20, 6, 8, 4, 2)
    connection.commit()  # or the blocks below would only be savepoints
    for _ in range(transactions):
        rollback = rng.random() < 0.05
        with connection.transaction(force_rollback=rollback):
            for action in rng.choices(actions, weights, k=rng.randint(1, 3)):
                action(connection, rng)
        committed += not rollback
    return committed


def _insert_customer(connection: Connection, rng: Random, number: int) -> None:
    connection.execute(
        "INSERT INTO customers VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            number,
            f"Customer {number}",
            f"customer{number}@example.org" if rng.random() < 0.9 else None,
            _amount(rng, 5_000),
            rng.random() < 0.9,
            json.dumps({"tier": rng.choice("ABC"), "tags": rng.sample(["new", "b2b", "eu"], 2)}),
            uuid.UUID(int=rng.getrandbits(128), version=4),
            _instant(rng),
            _instant(rng).replace(tzinfo=None) if rng.random() < 0.5 else None,
        ),
    )


def _insert_product(connection: Connection, rng: Random, number: int) -> None:
    released = date(2020, 1, 1) + timedelta(days=rng.randrange(2_000)) if rng.random() < 0.8 else None
    values = (
        number,
        f"SKU-{number:05d}",
        f"Product {number}",
        _amount(rng, 500),
        rng.random() * 20,
        rng.random() * 5,
    )
    connection.execute("INSERT INTO products VALUES (%s, %s, %s, %s, %s, %s, %s)", (*values, released))


def _new_customer(connection: Connection, rng: Random) -> None:
    _insert_customer(connection, rng, _next_id(connection, "customers"))


def _place_order(connection: Connection, rng: Random) -> None:
    customer = _any_id(connection, rng, "customers")
    if customer is None:
        return
    number = _next_id(connection, "orders")
    placed = _instant(rng)
    lines = [
        (number, n, rng.randint(1, 50), rng.randint(1, 5), _amount(rng, 500))
        for n in range(1, rng.randint(2, 5))
    ]
    total = sum((quantity * price for _, _, _, quantity, price in lines), Decimal(0))
    note = rng.choice(_WORDS) if rng.random() < 0.6 else None
    deliver = time(rng.randrange(24), rng.randrange(60), rng.randrange(60)) if rng.random() < 0.5 else None
    connection.execute(
        "INSERT INTO orders VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
        (number, customer, "new", total, placed, note, placed.date(), deliver),
    )
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO order_lines VALUES (%s, %s, %s, %s, %s)", lines)


def _advance_order(connection: Connection, rng: Random) -> None:
    number = _any_id(connection, rng, "orders")
    connection.execute("UPDATE orders SET status = %s WHERE id = %s", (rng.choice(_STATUSES), number))
    connection.execute(
        "UPDATE order_lines SET quantity = quantity + 1 WHERE order_id = %s AND line_no = 1", (number,)
    )


def _edit_customer(connection: Connection, rng: Random) -> None:
    connection.execute(
        "UPDATE customers SET balance = balance + %s, active = %s, updated_at = %s, email = %s WHERE id = %s",
        (
            _amount(rng, 200) - 100,
            rng.random() < 0.9,
            _instant(rng).replace(tzinfo=None),
            None if rng.random() < 0.1 else f"mail{rng.randrange(10_000)}@example.org",
            _any_id(connection, rng, "customers"),
        ),
    )


def _reprice(connection: Connection, rng: Random) -> None:
    connection.execute(
        "UPDATE products SET price = %s, rating = %s WHERE id = %s",
        (_amount(rng, 500), rng.random() * 5, _any_id(connection, rng, "products")),
    )


def _remove_order(connection: Connection, rng: Random) -> None:
    number = _any_id(connection, rng, "orders")
    connection.execute("DELETE FROM order_lines WHERE order_id = %s", (number,))
    connection.execute("DELETE FROM orders WHERE id = %s", (number,))


def _remove_customer(connection: Connection, rng: Random) -> None:
    connection.execute("DELETE FROM customers WHERE id = %s", (_any_id(connection, rng, "customers"),))


def _next_id(connection: Connection, table: str) -> int:
    row = connection.execute(f"SELECT coalesce(max(id), 0) + 1 FROM {table}").fetchone()  # noqa: S608
    return int(row[0]) if row else 1


def _any_id(connection: Connection, rng: Random, table: str) -> int | None:
    """An existing id; None in an empty table."""
    query = f"SELECT id FROM {table} WHERE id >= %s ORDER BY id LIMIT 1"  # noqa: S608
    row = connection.execute(query, (rng.randrange(_next_id(connection, table)),)).fetchone()
    return int(row[0]) if row else None


def _amount(rng: Random, below: int) -> Decimal:
    return Decimal(rng.randrange(below * 100)) / 100


def _instant(rng: Random) -> datetime:
    return _BEGIN + timedelta(microseconds=rng.randrange(10**13))

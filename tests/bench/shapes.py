"""What a row of the measured tables looks like, and events about such rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from unit.debezium_records import (  # type: ignore[import-not-found]
    decimal,
    event,
    field,
    optional,
    semantic,
)

Row = dict[str, Any]
Field = dict[str, Any]
_ZEROS: dict[str, Any] = {"long": 0, "int": 0, "string": "", "boolean": False, "double": 0.0}
"""What Debezium sends for a column that is not null and that the log did not keep."""


@dataclass(frozen=True, eq=False, slots=True)
class Shape:
    name: str
    fields: tuple[Field, ...]
    row: Callable[[random.Random, int], Row]
    """Raw values, as they stand on the wire: an int for a date, bytes for a decimal."""
    wide: bool = False
    """So wide that batches are limited by bytes (`bronze.batch_size`)."""


def change(shape: Shape, chance: random.Random, number: int) -> Any:
    """Fifteen updates, four inserts and a delete in twenty."""
    op = chance.choices("ucd", weights=(15, 4, 1))[0]
    row = shape.row(chance, number)
    lsn, millis = 26_000_000 + 48 * number, 1_700_000_000_000 + number
    times = {"ts_ms": millis, "ts_us": millis * 1000 + 7, "ts_ns": millis * 1_000_000 + 7_000}
    where = {"lsn": lsn, "sequence": f'["{lsn - 96}","{lsn}"]', "txId": number // 5}
    gone = op == "d"
    before = _key_alone(shape, number) if gone else None
    return event(op, before=before, after=None if gone else row, **where, **times)


def _key_alone(shape: Shape, number: int) -> Row:
    """The row before a delete under the usual replica identity."""
    return {each["name"]: _zero(each["type"]) for each in shape.fields} | {"id": number}


def _zero(node: Any) -> Any:
    if isinstance(node, list):
        return None
    return _ZEROS[node["type"] if isinstance(node, dict) else node]


def _order(chance: random.Random, number: int) -> Row:
    return {
        "id": number,
        "customer_id": chance.randrange(10**6),
        "status": chance.choice(["new", "paid", "shipped"]),
        "note": None if chance.random() < 0.1 else "größer " + "x" * chance.randrange(120, 260),
        "total": _decimal(chance.randrange(-(10**4), 10**8)),
        "placed_on": 19_000 + chance.randrange(1000),
        "changed_at": f"2026-01-{chance.randrange(1, 29):02}T10:11:12.{chance.randrange(10**6):06}Z",
        "quantity": chance.randrange(-9, 100),
        "address": f"Street {number}, City {number % 100}",
        "paid": chance.random() < 0.5,
        "created": 1_700_000_000_000_000 + 1_000 * number,
    }


def _decimal(unscaled: int) -> bytes:
    return unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)


def _narrow(chance: random.Random, number: int) -> Row:
    return {"id": number, "note": f"note {chance.randrange(10**6)}"}


def _wide(chance: random.Random, number: int) -> Row:
    kinds = (
        lambda: chance.randrange(10**9),
        lambda: f"text {chance.randrange(10**6)}",
        lambda: None if chance.random() < 0.5 else chance.randrange(10**5),
        lambda: _decimal(chance.randrange(10**8)),
        lambda: chance.random() < 0.5,
    )
    return {"id": number, **{f"c{place}": kinds[place % len(kinds)]() for place in range(WIDTH - 1)}}


def _texts(chance: random.Random, number: int) -> Row:
    words = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz äöü€", k=200))
    return {"id": number, **{f"text{place}": words * chance.randrange(5, 20) for place in range(3)}}


def _lists(chance: random.Random, number: int) -> Row:
    return {
        "id": number,
        "tags": [f"tag{chance.randrange(50)}" for _ in range(chance.randrange(8))],
        "numbers": [chance.randrange(10**6) for _ in range(chance.randrange(16))],
        "attributes": {f"k{place}": f"v{chance.randrange(99)}" for place in range(chance.randrange(6))},
    }


WIDTH = 200
_WIDE_TYPES = ("long", optional("string"), optional("int"), optional(decimal(10, 2)), optional("boolean"))

ORDERS = Shape(
    "envelope",
    (
        field("id", "long"),
        field("customer_id", "long"),
        field("status", "string"),
        field("note", optional("string")),
        field("total", optional(decimal(10, 2))),
        field("placed_on", optional(semantic("int", "io.debezium.time.Date"))),
        field("changed_at", optional(semantic("string", "io.debezium.time.ZonedTimestamp"))),
        field("quantity", "int"),
        field("address", optional("string")),
        field("paid", optional("boolean")),
        field("created", semantic("long", "io.debezium.time.MicroTimestamp")),
    ),
    _order,
)
NARROW = Shape("narrow", (field("id", "long"), field("note", optional("string"))), _narrow)
WIDE = Shape(
    "wide",
    (
        field("id", "long"),
        *(field(f"c{place}", _WIDE_TYPES[place % len(_WIDE_TYPES)]) for place in range(WIDTH - 1)),
    ),
    _wide,
)
STRINGS = Shape(
    "strings",
    (field("id", "long"), *(field(f"text{place}", optional("string")) for place in range(3))),
    _texts,
    wide=True,
)
ARRAYS = Shape(
    "arrays",
    (
        field("id", "long"),
        field("tags", optional({"type": "array", "items": ["null", "string"]})),
        field("numbers", optional({"type": "array", "items": ["null", "long"]})),
        field("attributes", optional({"type": "map", "values": ["null", "string"]})),
    ),
    _lists,
)

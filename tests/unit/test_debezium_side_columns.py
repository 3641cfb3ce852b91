"""Several types of one column: each value reaches the column that holds it, read singly or as columns."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from functools import reduce
from typing import Any

import pytest
from debezium_records import (  # type: ignore[import-not-found]
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
    semantic,
)

from cdc_lakehouse.debezium.columns import evolve_leniently
from cdc_lakehouse.debezium.decode import decode
from cdc_lakehouse.debezium.incompatible import with_side_columns

DATE = semantic("int", "io.debezium.time.Date")
STAMP = semantic("long", "io.debezium.time.MicroTimestamp")


pytestmark = pytest.mark.usefixtures("both_ways")


def decoded(grown: Any, *sent: tuple[Any, Any]) -> list[dict[str, Any]]:
    """Rows of writers that send column `a` with this type and value, met in this order."""
    writers = [envelope_schema([field("id", "long"), field("a", optional(node))]) for node, _ in sent]
    texts = {number: json.dumps(writer) for number, writer in enumerate(writers, 1)}
    table = reduce(grown, [columns(writer) for writer in writers])
    batch = kafka_batch(
        *(
            (
                key_bytes(),
                framed(number, writer, event(before={"id": 1, "a": None}, after={"id": 1, "a": value})),
            )
            for (number, writer), (_, value) in zip(enumerate(writers, 1), sent, strict=True)
        )
    )
    schemas = {KEY_ID: json.dumps(key_schema()), **texts}
    return list(decode(batch, plans(columns=table, schemas=schemas)).to_pylist())


def test_a_value_reaches_the_first_column_that_holds_its_type():
    found = decoded(with_side_columns, ("int", 1), ("string", "two"), ("boolean", True), ("long", 2**40))

    assert [row["after"] for row in found] == [
        {"id": 1, "a": 1, "a__v2": None, "a__v3": None},
        {"id": 1, "a": None, "a__v2": "two", "a__v3": None},
        {"id": 1, "a": None, "a__v2": None, "a__v3": True},
        {"id": 1, "a": 2**40, "a__v2": None, "a__v3": None},
    ]


def test_the_placeholder_of_a_side_column_is_named_by_that_column():
    (_, found) = decoded(with_side_columns, ("int", 1), ("string", "__debezium_unavailable_value"))

    assert (found["after"]["a__v2"], found["unavailable"]) == (None, ["a__v2"])


def test_without_side_columns_a_value_fits_nowhere():
    (_, found) = decoded(evolve_leniently, ("int", 1), ("string", "two"))

    assert found["decode_error"] == {
        "code": "incompatible_schema",
        "detail": "value: after: a: value is string, the column int32",
    }


def test_dates_become_timestamps_of_their_midnight():
    found = decoded(evolve_leniently, (DATE, 19_000), (STAMP, 1), (DATE, -719_162))

    assert [row["after"]["a"] for row in found] == [
        datetime(2022, 1, 8),  # noqa: DTZ001
        datetime(1970, 1, 1, microsecond=1),  # noqa: DTZ001
        datetime(1, 1, 1),  # noqa: DTZ001
    ]


def test_decimals_meet_in_one_that_holds_both():
    found = decoded(evolve_leniently, (decimal(4, 1), b"\x27\x0f"), (decimal(4, 3), b"\x27\x0f"))

    assert [row["after"]["a"] for row in found] == [Decimal("999.900"), Decimal("9.999")]

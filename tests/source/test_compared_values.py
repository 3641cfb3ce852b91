"""What a real PostgreSQL says of its values, beside what silver holds of them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

NTZ, UTC_TYPE = pa.timestamp("us"), pa.timestamp("us", "UTC")
TABLE = """
CREATE TABLE items (
    code varchar(10), line int, flag bool, small smallint, big bigint, ratio real, share double precision,
    price numeric(12, 2), free numeric, cash money, day date, clock time, wall timestamp, at timestamptz,
    raw bytea, ident uuid, doc jsonb, plain json, pad char(4), mood mood, short short_text, tags text[],
    counts int[], host inet,
    PRIMARY KEY (code, line)
)
"""
ROW = """
INSERT INTO items VALUES (
    'Ö,"1"', 7, true, -5, 9007199254740993, 0.1, 'NaN', 10.50, 1.500, 12.34, '2026-02-28', '24:00:00',
    '2026-01-02 03:04:05.678901', '2026-01-02 03:04:05+02', '\\x00ff', '11111111-2222-3333-4444-555555555555',
    '{"b": 1, "a": [1.0, null]}', '{"b":  1}', 'ab', 'fine', E'tab\\tand\\nline',
    '{"a,b",NULL,"\\"q\\""}', '{}', '10.0.0.1'
)
"""
SILVER = {
    "code": pa.array(['Ö,"1"', ""]),
    "line": pa.array([7, 0], pa.int32()),
    "flag": pa.array([True, None]),
    "small": pa.array([-5, None], pa.int16()),
    "big": pa.array([9007199254740993, None], pa.int64()),
    "ratio": pa.array([0.1, None], pa.float32()),
    "share": pa.array([float("nan"), None], pa.float64()),
    "price": pa.array([Decimal("10.50"), None], pa.decimal128(12, 2)),
    "free": pa.array(["1.5", None]),
    "cash": pa.array(["12.34", None]),
    "day": pa.array([date(2026, 2, 28), None], pa.date32()),
    "clock": pa.array([86_400_000_000, None], pa.int64()),
    "wall": pa.array([datetime(2026, 1, 2, 3, 4, 5, 678901), None], NTZ),  # noqa: DTZ001 - a clock on the wall
    "at": pa.array([datetime(2026, 1, 2, 1, 4, 5, tzinfo=UTC), None], UTC_TYPE),
    "raw": pa.array([b"\x00\xff", None], pa.binary()),
    "ident": pa.array(["11111111-2222-3333-4444-555555555555", None]),
    "doc": pa.array(['{"a":[1.0,null],"b":1}', None]),
    "plain": pa.array(['{"b": 1}', None]),
    "pad": pa.array(["ab  ", None]),
    "mood": pa.array(["fine", None]),
    "short": pa.array(["tab\tand\nline", None]),
    "tags": pa.array([["a,b", None, '"q"'], None], pa.list_(pa.string())),
    "counts": pa.array([[], None], pa.list_(pa.int32())),
    "host": pa.array(["10.0.0.1", None]),
}


@pytest.fixture
def wide(shelf):
    shelf.sql(
        "DROP TYPE IF EXISTS mood CASCADE",
        "DROP DOMAIN IF EXISTS short_text CASCADE",
        "CREATE TYPE mood AS ENUM ('fine')",
        "CREATE DOMAIN short_text AS text",
        TABLE,
        ROW,
        "INSERT INTO items (code, line) VALUES ('', 0)",
    )
    shelf.silver(SILVER, key=("code", "line"))
    return shelf


def test_every_type_that_is_compared_is_equal(wide):
    found = wide.verify().verification

    assert (found["verdict"], found["left_out"]) == ("equal", {})
    assert len(found["columns"]) == len(SILVER)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("share", 0.0),
        ("price", Decimal("10.51")),
        ("clock", 0),
        ("at", datetime(2026, 1, 2, 1, 4, 6, tzinfo=UTC)),
        ("raw", b"\x00"),
        ("doc", '{"a":[1.00,null],"b":1}'),
        ("tags", ["a", "b", None, '"q"']),
        ("counts", None),
    ],
)
def test_another_value_is_found_in_its_column(wide, column, value):
    wide.silver({**SILVER, column: pa.array([value, None], SILVER[column].type)}, key=("code", "line"))
    (found,) = wide.verify().verification["differences"]

    assert found["key"] == {"code": 'Ö,"1"', "line": "7"}
    assert list(found["columns"]) == [column]


def test_what_the_lake_cannot_hold_is_null_where_the_table_says_so(shelf):
    shelf.sql(
        "CREATE TABLE items (id int PRIMARY KEY, day date)",
        "INSERT INTO items VALUES (1, 'infinity'), (2, '2026-01-01')",
    )
    shelf.silver({"id": pa.array([1, 2], pa.int32()), "day": pa.array([None, date(2026, 1, 1)], pa.date32())})

    found = shelf.verify(out_of_range="as_null").verification
    assert (found["verdict"], found["stored_as_null"]) == ("equal", {"day": 1})
    assert shelf.verdict() == "open"


def test_columns_that_cannot_be_compared_are_named(shelf):
    shelf.sql(
        "CREATE TABLE items (id int PRIMARY KEY, span interval, secret text, fresh text, "
        "long numeric, twice int GENERATED ALWAYS AS (id * 2) STORED)",
        "INSERT INTO items SELECT 1, '1 day', 'x', 'y', "
        "string_agg(translate(md5(g::text), 'abcdef', '123456'), '')::numeric FROM generate_series(1, 300) g",
    )
    shelf.silver(
        {
            "id": pa.array([1], pa.int32()),
            "span": pa.array([1], pa.int64()),
            "long": pa.array([None], pa.string()),
            "twice": pa.array([None], pa.int32()),
            "former": pa.array(["z"]),
        }
    )
    found = shelf.verify(drop_columns=("secret",)).verification

    assert (found["verdict"], found["columns"]) == ("equal", ["id"])
    assert found["left_out"] == {
        "span": "interval as int64 is not compared",
        "secret": "drop_columns of the pipeline",
        "fresh": "silver has no such column",
        "long": "long numbers without a scale are not sent by updates that leave them alone",
        "twice": "generated columns are sent by snapshots only",
        "former": "the source has no such column",
    }


def test_a_partitioned_table_is_one_table(shelf):
    shelf.sql(
        "CREATE TABLE items (id int PRIMARY KEY, name text) PARTITION BY HASH (id)",
        "CREATE TABLE items_0 PARTITION OF items FOR VALUES WITH (MODULUS 2, REMAINDER 0)",
        "CREATE TABLE items_1 PARTITION OF items FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
        "INSERT INTO items SELECT g, 'x' FROM generate_series(1, 9) g",
    )
    shelf.silver({"id": pa.array(range(1, 10), pa.int32()), "name": pa.array(["x"] * 9)})

    assert shelf.verdict() == "equal"


def test_rows_that_silver_marks_as_deleted_are_none(shelf):
    shelf.sql("CREATE TABLE items (id int PRIMARY KEY)", "INSERT INTO items VALUES (1)")
    shelf.silver({"id": pa.array([1, 2], pa.int32()), "_cdc_deleted": pa.array([None, True])})

    assert shelf.verdict() == "equal"


def test_an_empty_table_is_equal_to_an_empty_table(shelf):
    shelf.sql("CREATE TABLE items (id int PRIMARY KEY)")
    shelf.silver({"id": pa.array([], pa.int32())}, row=[])

    assert shelf.verdict() == "equal"


def test_a_table_without_rows_in_the_lake_is_not_compared(shelf):
    shelf.sql("CREATE TABLE items (id int PRIMARY KEY)")

    assert shelf.verify().verification == {"verdict": "not compared", "why": "silver has no rows yet"}

"""Statistics of a file are bounds of its values, in the words of Delta's log."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from cdc_lakehouse.lake.file_statistics import (
    INDEXED_LEAVES,
    FileStatistics,
    IndexedColumns,
    statistics_of,
    with_wide_bounds,
)

HIGHEST = chr(0x10FFFF)
INSTANT = pa.timestamp("us", tz="UTC")


def bounds_of(values: list[Any], type_: pa.DataType) -> tuple[Any, Any] | None:
    statistics = json.loads(json.dumps(statistics_of(pa.table({"x": pa.array(values, type_)}))))
    lowest, highest = statistics["minValues"], statistics["maxValues"]
    assert lowest.keys() == highest.keys()
    return (lowest["x"], highest["x"]) if "x" in lowest else None


@pytest.mark.parametrize(
    ("values", "type_", "expected"),
    [
        ([3, None, 1], pa.int64(), (1, 3)),
        ([None, None], pa.int64(), None),
        (["b", "a"], pa.string(), ("a", "b")),
        (["x" * 40], pa.string(), ("x" * 32, "x" * 32 + HIGHEST)),
        (["x" * 32 + HIGHEST], pa.string(), None),
        ([1.5, -0.5], pa.float64(), (-0.5, 1.5)),
        ([0.0], pa.float64(), (-0.0, 0.0)),
        ([-0.0], pa.float32(), (-0.0, 0.0)),
        ([1.5, float("nan")], pa.float64(), None),
        ([1.5, float("inf")], pa.float64(), None),
        ([date(2026, 1, 2)], pa.date32(), ("2026-01-02", "2026-01-02")),
        ([Decimal("1.50"), Decimal("2.00")], pa.decimal128(10, 2), (1.5, 2)),
        ([Decimal("12345678901234567890.12")], pa.decimal128(38, 2), None),
        ([True, False], pa.bool_(), None),
        ([b"x"], pa.binary(), None),
        (
            [datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)],
            INSTANT,
            ("2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05.679Z"),
        ),
        (
            [datetime.fromisoformat("2026-01-02T03:04:05")],
            pa.timestamp("us"),
            ("2026-01-02T03:04:05.000",) * 2,
        ),
        ([datetime.max.replace(tzinfo=UTC)], INSTANT, None),
        ([2**62], INSTANT, None),
    ],
)
def test_bounds_are_written_as_delta_reads_them(values, type_, expected):
    assert str(bounds_of(values, type_)) == str(expected)  # -0.0 is 0.0, but for some readers


def test_leaves_of_a_struct_stand_below_its_name():
    rows = pa.table({"at": pa.array([{"epoch": 1, "note": None}, {"epoch": 2, "note": "a"}])})

    assert statistics_of(rows) == {
        "numRecords": 2,
        "minValues": {"at": {"epoch": 1, "note": "a"}},
        "maxValues": {"at": {"epoch": 2, "note": "a"}},
        "nullCount": {"at": {"epoch": 0, "note": 1}},
    }


def test_only_the_first_leaves_have_statistics():
    rows = pa.table({f"c{number}": [number] for number in range(INDEXED_LEAVES + 1)})

    assert list(statistics_of(rows)["nullCount"]) == [f"c{number}" for number in range(INDEXED_LEAVES)]


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, ["id", "at", "a.b"]),
        ({"delta.dataSkippingNumIndexedCols": "2"}, ["id", "at"]),
        ({"delta.dataSkippingNumIndexedCols": "0"}, []),
        ({"delta.dataSkippingNumIndexedCols": "-1"}, ["id", "at", "a.b"]),
        ({"delta.dataSkippingStatsColumns": "`a.b`, id"}, ["id", "a.b"]),
        ({"delta.dataSkippingStatsColumns": "at.commit"}, ["at"]),
        ({"delta.dataSkippingStatsColumns": "at"}, ["at"]),
        ({"delta.dataSkippingStatsColumns": ""}, []),
    ],
)
def test_a_table_says_which_columns_have_statistics(properties, expected):
    statistics = FileStatistics(IndexedColumns.of_table(properties))

    statistics.add(pa.table({"id": [1], "at": [{"commit": 2}], "a.b": ["x"]}))

    assert list(statistics.document()["nullCount"]) == expected


def test_a_part_without_an_order_leaves_the_whole_column_without_bounds():
    statistics = FileStatistics()
    for values in ([1.5], [float("nan")], [None], [0.5]):
        statistics.add(pa.table({"x": pa.array(values, pa.float64())}))

    assert statistics.document() == {
        "numRecords": 4,
        "minValues": {},
        "maxValues": {},
        "nullCount": {"x": 1},
    }


def test_parts_have_one_lowest_and_one_highest_value():
    statistics = FileStatistics()
    for values in (["b"], [None], ["c", "a"]):
        statistics.add(pa.table({"x": pa.array(values, pa.string())}))

    document = statistics.document()

    assert (document["minValues"], document["maxValues"]) == ({"x": "a"}, {"x": "c"})


def test_a_file_with_deleted_rows_says_that_its_bounds_are_wide():
    assert with_wide_bounds({"numRecords": 1}) == {"numRecords": 1, "tightBounds": False}

"""Whether a gap may lie in an interval, as the rows beside it tell without Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from cdc_lakehouse.bronze.gap_files import gaps_by_files
from cdc_lakehouse.lake.interval import MOST_FILES, Interval

FIRST, NEXT = "shop.public.orders@first", "shop.public.orders@next"


def at(hour: int) -> datetime:
    return datetime(2026, 11, 3, hour, tzinfo=UTC)


def rows(*places: tuple[str, int, int, int], committed: int | None = None) -> pa.Table:
    """Rows of these incarnations, partitions, offsets and hours; committed then, or at one hour."""
    instant = pa.timestamp("us", "UTC")
    source = [{"ts": at(hour if committed is None else committed)} for *_, hour in places]
    return pa.table(
        {
            "topic": ["shop.public.orders" for _ in places],
            "topic_id": [name for name, *_ in places],
            "partition": pa.array([partition for _, partition, *_ in places], pa.int32()),
            "offset": pa.array([offset for *_, offset, _ in places], pa.int64()),
            "kafka_timestamp": pa.array([at(hour) for *_, hour in places], instant),
            "source": pa.array(source, pa.struct([("ts", instant)])),
        }
    )


def within(folder: Path, start: int, until: int, *, source: str = FIRST) -> bool | None:
    """Return whether the gap from offset 2 to 5 may lie between these hours."""
    gaps = {source: {0: ((2, 5),)}}
    found = gaps_by_files(folder.as_uri(), gaps, Interval(at(start), at(until)), sources=(FIRST, NEXT))
    return None if found is None else found == gaps


@pytest.mark.parametrize(
    ("hours", "may_lie"),
    [((1, 2), False), ((2, 3), True), ((5, 6), True), ((6, 7), True), ((7, 8), False)],
    ids=str,
)
def test_a_gap_lies_between_the_rows_beside_it(tmp_path, hours, may_lie):
    write_deltalake(tmp_path, rows(("first", 0, 0, 1), ("first", 0, 1, 2), ("first", 1, 9, 7)), mode="append")
    write_deltalake(tmp_path, rows(("first", 0, 5, 6), ("first", 0, 6, 6), ("first", 1, 1, 1)), mode="append")

    assert within(tmp_path, *hours) is may_lie


def test_a_gap_behind_a_row_that_came_late_may_have_been_committed_before_it(tmp_path):
    write_deltalake(tmp_path, rows(("first", 0, 1, 8), committed=2), mode="append")

    assert within(tmp_path, 3, 4) is True


def test_a_gap_at_the_end_of_a_topic_ends_with_the_first_row_of_the_next_one(tmp_path):
    write_deltalake(tmp_path, rows(("first", 0, 1, 2)), mode="append")
    write_deltalake(tmp_path, rows(("next", 0, 0, 4), ("next", 0, 1, 9)), mode="append")

    assert (within(tmp_path, 3, 4), within(tmp_path, 5, 6)) == (True, False)


def test_a_gap_without_a_row_beside_it_counts(tmp_path):
    write_deltalake(tmp_path, rows(("next", 1, 7, 4)), mode="append")

    assert within(tmp_path, 9, 10, source=NEXT) is True


def test_a_gap_that_many_files_may_tell_of_is_left_to_spark(tmp_path):
    for _ in range(MOST_FILES + 1):
        write_deltalake(
            tmp_path, rows(("first", 1, 0, 1), ("first", 1, 9, 1), ("first", 0, 9, 1)), mode="append"
        )
        write_deltalake(tmp_path, rows(("first", 0, 0, 1), ("first", 1, 9, 1)), mode="append")

    assert within(tmp_path, 1, 2) is None

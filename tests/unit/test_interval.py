"""Intervals as a person writes them, and the rows of bronze that belong to one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from cdc_lakehouse.contract import Job, JobRequest
from cdc_lakehouse.errors import FileDamagedError, InvalidIntervalError
from cdc_lakehouse.lake.deletion_vectors import DeletionVector
from cdc_lakehouse.lake.interval import MOST_FILES, Interval, RowsOfInterval, count_cases, rows_of_interval
from cdc_lakehouse.lake.snapshot import newest_snapshot
from cdc_lakehouse.run_modes import Recompute

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def asked(start: str | None, until: str | None) -> Interval | None:
    request = JobRequest(Job.SILVER_MERGE, "shop", (), from_time=start, until_time=until)
    return Interval.asked_for(request, timezone="Europe/Berlin", now=NOW)


def test_a_run_without_an_interval_has_none():
    assert asked(None, None) is None


@pytest.mark.parametrize("more", [{"recompute": Recompute.ALL}, {"also_drain": True}], ids=str)
def test_what_only_an_interval_has_is_refused_without_one(more):
    request = JobRequest(Job.SILVER_MERGE, "shop", (), **more)

    with pytest.raises(InvalidIntervalError, match="it needs a beginning and an end"):
        Interval.asked_for(request, timezone="UTC", now=NOW)


def test_a_time_without_an_offset_is_one_of_the_pipelines_timezone():
    found = asked("2026-11-03", "2026-11-03T10:00:00+00:00")

    assert found == Interval(datetime(2026, 11, 2, 23, tzinfo=UTC), datetime(2026, 11, 3, 10, tzinfo=UTC))


@pytest.mark.parametrize(
    ("start", "until", "problem"),
    [
        ("2026-11-03", None, "it needs a beginning and an end"),
        ("2026-11-03", "2026-11-03", "it ends before it begins"),
        ("2026-11-04", "2026-11-03", "it ends before it begins"),
        ("2026-11-03", "2026-11-21", "it ends in the future"),
        ("last Tuesday", "2026-11-03", "'last Tuesday' is no time like"),
    ],
)
def test_an_interval_that_is_none_is_refused_with_the_way_to_write_it(start, until, problem):
    with pytest.raises(InvalidIntervalError, match=problem):
        asked(start, until)


def hours(*numbers: int) -> list[datetime]:
    return [datetime(2026, 11, 3, number, tzinfo=UTC) for number in numbers]


def interval(start: int, until: int) -> Interval:
    first, behind = hours(start, until)
    return Interval(first, behind, Recompute.ALL)


@pytest.fixture
def bronze(tmp_path: Path) -> str:
    """Two files: records of 1 to 3 o'clock, and those of 6 and 7, one of which was committed at 4."""
    write_deltalake(tmp_path, committed(hours(1, 2, 3), hours(1, 2, 3)), mode="append")
    write_deltalake(tmp_path, committed(hours(6, 7), hours(4, 7)), mode="append")
    return tmp_path.as_uri()


def committed(in_kafka: list[datetime], in_source: list[datetime]) -> pa.Table:
    """Rows by their times in Kafka and at the source."""
    times = pa.timestamp("us", "UTC")
    source = pa.array([{"ts": moment} for moment in in_source], pa.struct([("ts", times)]))
    return pa.table({"kafka_timestamp": pa.array(in_kafka, times), "source": source})


@pytest.mark.parametrize(
    ("within", "rows"),
    [
        ((1, 4), RowsOfInterval(3, any_row=True)),
        ((2, 7), RowsOfInterval(3, any_row=True)),
        ((4, 5), RowsOfInterval(0, any_row=True)),
        ((5, 6), RowsOfInterval(0, any_row=False)),
        ((8, 9), RowsOfInterval(0, any_row=False)),
    ],
    ids=["a whole file", "parts of two", "committed in it, in Kafka later", "between", "behind"],
)
def test_rows_belong_to_an_interval_by_their_time_in_kafka_or_at_the_source(bronze, within, rows):
    assert rows_of_interval(bronze, interval(*within)) == rows


def test_a_file_that_lies_within_the_interval_is_counted_without_being_opened(bronze):
    for file in Path(bronze.removeprefix("file://")).glob("*.parquet"):
        file.unlink()

    assert rows_of_interval(bronze, interval(0, 8)) == RowsOfInterval(5, any_row=True)


def test_no_file_behind_an_interval_with_rows_is_opened(bronze):
    for file in Path(bronze.removeprefix("file://")).glob("*.parquet"):
        if pq.read_table(file)["kafka_timestamp"][0].as_py() == hours(6)[0]:
            file.unlink()

    assert rows_of_interval(bronze, interval(2, 4)) == RowsOfInterval(2, any_row=True)


def test_files_whose_records_were_committed_elsewhen_are_not_opened(bronze):
    """However many came since: their commits lie in the statistics of the log."""
    later = committed(hours(20, 21), hours(20, 21))
    for _ in range(MOST_FILES + 1):
        write_deltalake(Path(bronze.removeprefix("file://")), later, mode="append")

    assert rows_of_interval(bronze, interval(4, 5)) == RowsOfInterval(0, any_row=True)
    assert rows_of_interval(bronze, interval(9, 12)) == RowsOfInterval(0, any_row=False)


def test_files_without_statistics_of_their_commits_are_left_to_spark_if_they_are_many(bronze):
    later = committed(hours(20, 21), hours(20, 21))
    settings = {"delta.dataSkippingStatsColumns": "kafka_timestamp"}
    DeltaTable(bronze).alter.set_table_properties(settings)
    for _ in range(MOST_FILES + 1):
        write_deltalake(Path(bronze.removeprefix("file://")), later, mode="append")

    assert rows_of_interval(bronze, interval(9, 12)) is None
    assert rows_of_interval(bronze, interval(1, 2)) == RowsOfInterval(1, any_row=True)


def test_rows_that_spark_wrote_with_timestamps_of_its_own_are_counted(bronze):
    """`INT96`, which has nanoseconds and no offset, and no statistics in the file itself."""
    for file in Path(bronze.removeprefix("file://")).glob("*.parquet"):
        pq.write_table(pq.read_table(file), file, use_deprecated_int96_timestamps=True)

    assert rows_of_interval(bronze, interval(2, 5)) == RowsOfInterval(2, any_row=True)


def test_rows_that_are_deleted_are_none_of_the_interval(bronze, monkeypatch):
    """The first two of each file."""
    gone = DeletionVector("i", place="", offset=0, size=0, cardinality=2)
    whole = newest_snapshot(bronze)
    assert whole is not None
    whole = replace(whole, files=tuple(replace(file, deleted=gone) for file in whole.files))
    monkeypatch.setattr("cdc_lakehouse.lake.interval.newest_snapshot", lambda uri: whole)
    monkeypatch.setattr("cdc_lakehouse.lake.rows.deleted_rows", lambda vector, read: np.array([0, 1]))

    within = [rows_of_interval(bronze, interval(*hours)) for hours in ((1, 4), (2, 3), (4, 5))]

    assert within == [
        RowsOfInterval(1, any_row=True),
        RowsOfInterval(0, any_row=False),
        RowsOfInterval(0, any_row=False),
    ]


def test_a_damaged_file_is_named_and_not_taken_for_storage_that_is_away(bronze):
    for file in Path(bronze.removeprefix("file://")).glob("*.parquet"):
        file.write_bytes(b"not what was written" * 100)

    with pytest.raises(FileDamagedError):
        rows_of_interval(bronze, interval(2, 3))


@pytest.mark.parametrize(("within", "count"), [((4, 5), 1), ((6, 7), 2), ((4, 7), 2), ((8, 9), 0)], ids=str)
def test_an_undecodable_record_belongs_to_an_interval_by_either_time(tmp_path, within, count):
    """Of one nothing is known but when it came to Kafka; another one was committed at 4."""
    fault = pa.struct([("code", pa.string()), ("detail", pa.string())])
    faults = [None, {"code": "bad_frame", "detail": "x"}, {"code": "missing_key", "detail": "x"}]
    sources = [{"ts": moment} for moment in hours(6)] + [None] + [{"ts": moment} for moment in hours(4)]
    times = pa.timestamp("us", "UTC")
    rows = {
        "kafka_timestamp": pa.array(hours(6, 6, 6), times),
        "source": pa.array(sources, pa.struct([("ts", times)])),
        "decode_error": pa.array(faults, fault),
    }
    write_deltalake(tmp_path, pa.table(rows))

    assert count_cases(tmp_path.as_uri(), interval(*within)) == count


def test_a_table_that_is_not_there_has_no_rows(tmp_path):
    assert rows_of_interval((tmp_path / "none").as_uri(), interval(0, 8)) == RowsOfInterval(0, any_row=False)

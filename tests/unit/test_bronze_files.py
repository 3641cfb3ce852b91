"""What a worker writes, and the line that tells of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from debezium_records import (  # type: ignore[import-not-found]
    TOPIC,
    event,
    kafka_batch,
    key_bytes,
    plans,
    row,
    value_bytes,
)

from cdc_lakehouse.bronze.decode_udf import LAYOUT, decoded, file_schema, files_of, stamp_of
from cdc_lakehouse.bronze.log_runs import LogRun
from cdc_lakehouse.bronze.worker_failures import WorkerStorageError, known_failure
from cdc_lakehouse.bronze.written_file import (
    BadRow,
    SnapshotStart,
    Span,
    WrittenFile,
    with_runs_apart,
)
from cdc_lakehouse.contract import ENV_CONNECTION_STORAGE
from cdc_lakehouse.errors import MissingConnectionError, StorageUnavailableError, VersionMismatchError
from cdc_lakehouse.lake import parquet_files

STAMP = stamp_of("attempt-1")


def written(folder: Path, *batches: pa.RecordBatch) -> list[WrittenFile]:
    rows = decoded(iter(batches), plans(), stamp=STAMP)
    files = files_of(rows, file_schema(plans(), STAMP), folder=folder.as_uri(), attempt="attempt-1")
    return [WrittenFile.from_json(file.to_json()) for file in files]


def batch_at(offset: int, *records: tuple[bytes | None, bytes | None]) -> pa.RecordBatch:
    batch = kafka_batch(*records)
    offsets = pa.array(range(offset, offset + len(records)), pa.int64())
    return batch.set_column(batch.schema.get_field_index("offset"), "offset", offsets)


def good(number: int, **source: object) -> tuple[bytes, bytes]:
    return key_bytes(number), value_bytes(event("c", after=row(id=number), **source))


def test_a_file_holds_every_record_and_its_line_says_which(tmp_path):
    (file,) = written(tmp_path, batch_at(100, good(1), good(2)), batch_at(102, good(3)))

    table = pq.read_table(tmp_path / file.name)
    assert file.rows == table.num_rows == 3
    assert file.size == (tmp_path / file.name).stat().st_size
    assert file.spans == (Span(TOPIC, 0, 100, 102, 3),)
    assert table["attempt"].to_pylist() == ["attempt-1"] * 3
    assert table["after"].combine_chunks().field("id").to_pylist() == [1, 2, 3]


def test_a_task_without_records_writes_nothing(tmp_path):
    assert written(tmp_path, kafka_batch()) == []
    assert list(tmp_path.iterdir()) == []


def test_a_full_file_is_closed_and_the_next_one_begun(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_files, "ROW_GROUP_ROWS", 2)
    monkeypatch.setattr(parquet_files, "FILE_BYTES", 1)

    first, second = written(tmp_path, batch_at(100, good(1), good(2)), batch_at(102, good(3)))

    assert (first.spans, second.spans) == ((Span(TOPIC, 0, 100, 101, 2),), (Span(TOPIC, 0, 102, 102, 1),))
    assert first.name != second.name


def test_rows_wait_for_a_row_group(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_files, "ROW_GROUP_ROWS", 2)

    (file,) = written(tmp_path, *(batch_at(offset, good(1)) for offset in range(5)))

    groups = pq.read_metadata(tmp_path / file.name)
    assert [groups.row_group(place).num_rows for place in range(groups.num_row_groups)] == [2, 2, 1]


def test_a_failure_leaves_no_file_behind(tmp_path):
    def broken() -> Iterator[pa.RecordBatch]:
        yield batch_at(100, good(1))
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        list(
            files_of(
                decoded(broken(), plans(), stamp=STAMP),
                file_schema(plans(), STAMP),
                folder=tmp_path.as_uri(),
                attempt="a",
            )
        )
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_the_stores_failure(tmp_path):
    with pytest.raises(WorkerStorageError) as caught:
        written(tmp_path / "gone", batch_at(100, good(1)))

    found = known_failure(f"PythonException: {caught.value}", root="file:/lake", table="orders")
    assert isinstance(found, StorageUnavailableError)
    assert (found.root, "No such file" in found.reason) == ("file:/lake", True)


def test_an_executor_without_the_connection_says_which_variable_it_lacks(monkeypatch):
    monkeypatch.delenv(ENV_CONNECTION_STORAGE, raising=False)
    rows = decoded(iter([batch_at(100, good(1))]), plans(), stamp=STAMP)
    with pytest.raises(WorkerStorageError) as caught:
        list(files_of(rows, file_schema(plans(), STAMP), folder="s3a://nowhere/lake", attempt="a"))

    found = known_failure(f"PythonException: {caught.value}", root="s3a://nowhere/lake", table="orders")
    assert isinstance(found, MissingConnectionError)
    assert (found.connection, found.problem) == (
        ENV_CONNECTION_STORAGE,
        "in an executor, the environment variable is not set",
    )


def test_other_failures_are_told_apart():
    text = "worker-version[numpy;worker=1;driver=2]"

    assert isinstance(known_failure(text, root="", table="orders"), VersionMismatchError)
    assert known_failure("ValueError: 3", root="", table="orders") is None


@pytest.mark.parametrize("offsets", [(100, 100), (101, 100)])
def test_offsets_that_do_not_ascend_are_no_records_of_kafka(tmp_path, offsets):
    with pytest.raises(ValueError, match="do not ascend"):
        written(tmp_path, *(batch_at(offset, good(1)) for offset in offsets))
    assert list(tmp_path.iterdir()) == []


def test_a_line_counts_what_was_undecodable_and_names_the_first(tmp_path):
    bad = (key_bytes(1), b"junk")

    (file,) = written(tmp_path, batch_at(100, good(1), bad, bad), batch_at(103, bad, bad))

    assert file.errors_by_code == {"bad_frame": 4}
    assert file.bad_rows == {"bad_frame": tuple(BadRow(TOPIC, 0, at, 7, None) for at in (101, 102, 103))}
    assert (file.key_ids, file.value_ids) == ((7,), (9,))


def test_a_line_names_where_full_snapshots_begin(tmp_path):
    records = [
        good(1, snapshot="first", txId=5),
        good(2, snapshot="true", txId=5),
        good(3, snapshot="incremental", txId=6),
        good(4, snapshot="false", txId=7),
        good(5, snapshot="last", txId=8),
    ]

    (file,) = written(tmp_path, batch_at(100, *records))

    assert set(file.snapshots) == {
        SnapshotStart(TOPIC, 0, 5, 100, (26002768, 26002808)),
        SnapshotStart(TOPIC, 0, 8, 104, (26002768, 26002808)),
    }


def test_a_snapshot_row_whose_times_are_no_dates_is_counted_like_any_other(tmp_path):
    (file,) = written(
        tmp_path, batch_at(100, good(1, snapshot="first", txId=5, ts_us=400_000_000_000_000_000))
    )

    assert file.snapshots == (SnapshotStart(TOPIC, 0, 5, 100, (26002768, 26002808)),)
    assert file.commits is not None
    assert file.commits[1] == 400_000_000_000_000_000


def test_a_line_says_where_streamed_events_know_the_commit_before_them_and_how_far_the_log_went(tmp_path):
    unknown = {"sequence": '[null,"900"]', "lsn": 900}
    first = [
        good(1, lsn=820),
        (None, None),
        good(1, snapshot="incremental", sequence='["900","900"]', lsn=None),
        good(2, lsn=810),
        (key_bytes(1), b"junk"),
        good(3, **unknown),
        good(4, snapshot="true", txId=8, **unknown),
    ]

    (file,) = written(tmp_path, batch_at(100, *first), batch_at(107, good(5, **unknown), good(6, lsn=805)))

    named = 26002768
    assert file.log_runs == (
        LogRun(
            TOPIC,
            0,
            100,
            103,
            True,
            row=820,
            begins=(named, 820),
            ends=(named, 810),
            turned=103,
            commits=(named, named),
        ),
        LogRun(TOPIC, 0, 105, 105, False, row=900, begins=(0, 900), ends=(0, 900)),
        LogRun(TOPIC, 0, 107, 107, False, row=900, begins=(0, 900), ends=(0, 900)),
        LogRun(
            TOPIC, 0, 108, 108, True, row=805, begins=(named, 805), ends=(named, 805), commits=(named, named)
        ),
    )
    assert [(run.first, run.last, run.commits) for run in file.chunk_runs] == [(102, 102, (900, 900))]
    assert WrittenFile.from_json(file.to_json()) == file


def test_runs_of_a_file_are_split_where_a_snapshot_was_taken(tmp_path):
    def at(commit: int) -> tuple[bytes, bytes]:
        return good(1, sequence=f'["{commit}","{commit}"]', lsn=commit + 5)

    chunk = good(1, snapshot="incremental", sequence='["960","960"]', lsn=None)
    (file,) = written(
        tmp_path, batch_at(100, at(900), at(940), (None, None), at(950), chunk, at(930), at(950))
    )

    (apart,) = with_runs_apart([file], {(TOPIC, 0): [950]}, folder=tmp_path.as_uri())

    runs = [(run.first, run.last, run.commits) for run in (*apart.log_runs, *apart.chunk_runs)]
    assert runs == [
        (100, 101, (900, 940)),
        (103, 103, (950, 950)),
        (105, 105, (930, 930)),
        (106, 106, (950, 950)),
        (104, 104, (960, 960)),
    ]
    assert with_runs_apart([file], {(TOPIC, 1): [950]}, folder=tmp_path.as_uri()) == [file]


def test_a_source_that_never_names_the_commit_before_has_one_run(tmp_path):
    records = [good(number, connector="sqlserver", sequence=None) for number in range(3)]

    (file,) = written(tmp_path, batch_at(100, *records))

    assert file.log_runs == (LogRun(TOPIC, 0, 100, 102, False, row=102, begins=(0, 100), ends=(0, 102)),)


def test_a_snapshot_without_a_transaction_does_not_begin_anywhere(tmp_path):
    (file,) = written(tmp_path, batch_at(100, good(1, snapshot="first", txId=None)))

    assert (file.snapshots, file.log_runs) == ((), ())


def test_partitions_are_told_apart(tmp_path):
    one, other = batch_at(100, good(1), good(2)), batch_at(5, good(3))
    place = other.schema.get_field_index("partition")
    other = other.set_column(place, "partition", pa.array([1], pa.int32()))

    (file,) = written(tmp_path, pa.concat_batches([one, other]))

    assert set(file.spans) == {Span(TOPIC, 0, 100, 101, 2), Span(TOPIC, 1, 5, 5, 1)}


def test_statistics_are_those_that_delta_keeps():
    file = WrittenFile(
        name="f",
        size=1,
        modified=1,
        rows=3,
        spans=(Span("b", 2, 7, 9, 2), Span("a", 4, 1, 1, 1)),
        timestamps=(1_700_000_000_123_456, 1_700_000_001_000_001),
        without_timestamp=1,
        commits=(1_600_000_000_123_456, 1_600_000_001_000_001),
        errors_by_code={"bad_frame": 1, "truncated": 1},
    )

    assert file.statistics() == {
        "numRecords": 3,
        "minValues": {
            "topic": "a",
            "partition": 2,
            "offset": 1,
            "kafka_timestamp": "2023-11-14T22:13:20.123Z",
            "source": {"ts": "2020-09-13T12:26:40.123Z"},
        },
        "maxValues": {
            "topic": "b",
            "partition": 4,
            "offset": 9,
            "kafka_timestamp": "2023-11-14T22:13:21.001Z",
            "source": {"ts": "2020-09-13T12:26:41.001Z"},
        },
        "nullCount": {
            "topic": 0,
            "partition": 0,
            "offset": 0,
            "kafka_timestamp": 1,
            "decode_error": {"code": 1},
        },
    }


@pytest.mark.parametrize("bounds", [None, (0, 2**63 - 1), (-(2**63), 0)])
def test_absurd_instants_have_no_statistics(bounds):
    file = WrittenFile(
        name="f", size=1, modified=1, rows=1, spans=(Span("a", 0, 1, 1, 1),), timestamps=bounds
    )

    assert "kafka_timestamp" not in file.statistics()["minValues"]


def test_only_what_repeats_has_a_dictionary_and_only_what_is_skipped_by_has_statistics(tmp_path):
    (file,) = written(tmp_path, batch_at(100, good(1), good(2)))

    group = pq.read_metadata(tmp_path / file.name).row_group(0)
    leaves = {group.column(place).path_in_schema: group.column(place) for place in range(group.num_columns)}
    assert {name for name, leaf in leaves.items() if leaf.has_dictionary_page} == set(LAYOUT.dictionary)
    assert {name for name, leaf in leaves.items() if leaf.is_stats_set} == set(LAYOUT.statistics)

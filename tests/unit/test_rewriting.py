"""The rows of several data files in one new file: none is lost, and none that is deleted comes back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import WriterProperties, write_deltalake

from cdc_lakehouse.errors import FileDamagedError
from cdc_lakehouse.lake import parquet_files
from cdc_lakehouse.lake.deletion_vectors import DeletionVector, write_vectors, z85_encoded
from cdc_lakehouse.lake.file_statistics import statistics_of
from cdc_lakehouse.lake.parquet_files import ROW_GROUP_ROWS
from cdc_lakehouse.lake.snapshot import DataFile, Snapshot, newest_snapshot
from cdc_lakehouse.maintenance import rewriting
from cdc_lakehouse.maintenance.rewriting import write_files_as_one

ATTEMPT = "20261120T080000Z-00000001"


@pytest.fixture
def two_files(tmp_path: Path) -> Snapshot:
    uri = (tmp_path / "table").as_uri()
    for start in (0, 3):
        rows = pa.table({"id": list(range(start, start + 3)), "name": ["a", "b", None]})
        write_deltalake(uri, rows, mode="append")
    snapshot = newest_snapshot(uri)
    assert snapshot is not None
    return snapshot


def without_rows(file: DataFile, *numbers: int) -> DataFile:
    (vector,) = write_vectors([np.array(numbers, np.uint64)], write=lambda *_: None)
    return replace(file, deleted=vector)


def read_new(snapshot: Snapshot, name: str) -> pa.Table:
    return pq.read_table(Path(snapshot.uri.removeprefix("file://")) / name)


def test_rows_that_are_not_deleted_are_in_the_new_file(two_files):
    first, second = sorted(two_files.files, key=lambda file: file.oldest["id"])
    part = replace(two_files, files=(without_rows(first, 0, 2), second))

    new = write_files_as_one(part, attempt=ATTEMPT)

    assert new is not None
    rows = read_new(part, new.name)
    assert rows.to_pydict() == {"id": [1, 3, 4, 5], "name": ["b", "a", "b", None]}
    assert (new.statistics, new.name.startswith(ATTEMPT)) == (statistics_of(rows), True)


def test_files_without_rows_leave_no_file(two_files):
    part = replace(two_files, files=tuple(without_rows(file, 0, 1, 2) for file in two_files.files))
    folder = Path(part.uri.removeprefix("file://"))
    before = sorted(folder.iterdir())

    assert write_files_as_one(part, attempt=ATTEMPT) is None
    assert sorted(folder.iterdir()) == before


def test_a_file_with_other_rows_than_the_log_says_is_damaged_and_leaves_no_file(two_files):
    one, other = two_files.files
    part = replace(two_files, files=(one, replace(other, rows=4)))

    with pytest.raises(FileDamagedError, match="has 3 rows, the log says 4"):
        write_files_as_one(part, attempt=ATTEMPT)
    assert not list(Path(part.uri.removeprefix("file://")).glob(f"{ATTEMPT}*"))


def test_wide_rows_come_in_row_groups_of_few(tmp_path, monkeypatch):
    monkeypatch.setattr(rewriting, "ROW_GROUP_BYTES", 100_000)
    monkeypatch.setattr(parquet_files, "ROW_GROUP_BYTES", 100_000)
    uri = (tmp_path / "wide").as_uri()
    random = Random(1)  # noqa: S311 - bytes that no codec makes smaller
    write_deltalake(uri, pa.table({"document": [random.randbytes(1_000) for _ in range(1_000)]}))
    snapshot = newest_snapshot(uri)
    assert snapshot is not None

    new = write_files_as_one(snapshot, attempt=ATTEMPT)

    assert new is not None
    metadata = pq.ParquetFile(Path(uri.removeprefix("file://")) / new.name).metadata
    sizes = [metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups)]
    assert (metadata.num_rows, max(sizes) <= 250_000) == (1_000, True)


def test_a_new_file_has_the_codec_of_the_others(tmp_path):
    uri = (tmp_path / "zstd").as_uri()
    write_deltalake(uri, pa.table({"id": [1]}), writer_properties=WriterProperties(compression="ZSTD"))
    snapshot = newest_snapshot(uri)
    assert snapshot is not None

    new = write_files_as_one(snapshot, attempt=ATTEMPT)

    assert new is not None
    metadata = pq.ParquetFile(Path(uri.removeprefix("file://")) / new.name).metadata
    assert metadata.row_group(0).column(0).compression == "ZSTD"


def test_a_deletion_vector_that_cannot_be_read_is_a_damaged_file(two_files):
    one, other = two_files.files
    wrong = DeletionVector("i", z85_encoded(bytes(8)), 0, 8, 1)
    part = replace(two_files, files=(replace(one, deleted=wrong), other))

    with pytest.raises(FileDamagedError, match="its deletion vector cannot be read"):
        write_files_as_one(part, attempt=ATTEMPT)


def test_statistics_cover_all_row_groups(tmp_path):
    uri = (tmp_path / "large").as_uri()
    count = 2 * ROW_GROUP_ROWS
    write_deltalake(uri, pa.table({"id": list(range(count, 0, -1))}))
    snapshot = newest_snapshot(uri)
    assert snapshot is not None

    new = write_files_as_one(snapshot, attempt=ATTEMPT)

    assert new is not None
    assert (new.statistics["minValues"], new.statistics["maxValues"]) == ({"id": 1}, {"id": count})
    assert pq.ParquetFile(Path(uri.removeprefix("file://")) / new.name).num_row_groups == 2

"""What reading a table costs, from its log alone."""

from __future__ import annotations

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from cdc_lakehouse.lake.health import Health, health_of


def test_health_counts_files_rows_and_commits(tmp_path):
    for number in range(3):
        write_deltalake(tmp_path, pa.table({"id": [number, number + 10]}), mode="append")
    size = sum(file.stat().st_size for file in tmp_path.glob("*.parquet"))

    found = health_of(tmp_path.as_uri())

    assert found == Health(files=3, bytes=size, small_files=3, rows=6, hidden_rows=0, log_files=3)
    assert (found.small_share, found.hidden_share) == (1.0, 0.0)


def test_a_table_of_one_file_has_no_small_ones(tmp_path):
    write_deltalake(tmp_path, pa.table({"id": [1]}))

    found = health_of(tmp_path.as_uri())

    assert found is not None
    assert (found.files, found.small_files) == (1, 0)


def test_health_is_read_from_a_checkpoint_too(tmp_path):
    for number in range(3):
        write_deltalake(tmp_path, pa.table({"id": [number]}), mode="append")
    before = health_of(tmp_path.as_uri())
    DeltaTable(tmp_path).create_checkpoint()

    assert health_of(tmp_path.as_uri()) == before


def test_a_table_that_is_not_there_has_no_health(tmp_path):
    assert health_of((tmp_path / "none").as_uri()) is None

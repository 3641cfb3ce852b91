"""A table that is deleted or moved is there as a whole, or it is no table."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from cdc_lakehouse.errors import StorageUnavailableError
from cdc_lakehouse.lake import files
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.repair.folders import (
    delete_table,
    folders_of,
    is_folder,
    move_folder,
    size_of,
    standing_in,
)

COMMITS = 4


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """A table of four commits, the first two of which are in a checkpoint."""
    uri = (tmp_path / "orders").as_uri()
    for number in range(COMMITS):
        write_deltalake(uri, pa.table({"id": [number]}), mode="append")
        if number == 1:
            DeltaTable(uri).create_checkpoint()
    return uri


def count_rows(uri: str) -> int | None:
    """Return the rows that a reader finds; None where it finds no table."""
    return None if standing_in(uri) is None else DeltaTable(uri).to_pyarrow_table().num_rows


@pytest.mark.parametrize("deleted", range(7))
def test_a_table_that_is_deleted_in_part_is_whole_or_none(
    uri: str, deleted: int, monkeypatch: pytest.MonkeyPatch
):
    left, real = [deleted], files.delete_file

    def die_later(file: str, *child: str) -> None:
        if child or not left[0]:
            raise StorageUnavailableError(root=file, reason="killed")
        left[0] -= 1
        real(file)

    with monkeypatch.context() as patch:
        patch.setattr(files, "delete_file", die_later)
        patch.setattr(files, "delete_child", die_later)
        with pytest.raises(StorageUnavailableError):
            delete_table(uri)
    between = count_rows(uri)
    delete_table(uri)
    delete_table(uri)

    assert between in (COMMITS, None)
    assert not is_folder(uri)


def test_a_folder_that_is_moved_is_the_same_table_elsewhere(uri: str):
    before, target = (standing_in(uri), size_of(uri)), f"{uri}-archive/here"

    move_folder(uri, target)

    assert (is_folder(uri), standing_in(target), size_of(target)) == (False, *before)
    write_deltalake(uri, pa.table({"id": [9]}))
    with pytest.raises(StorageUnavailableError):
        move_folder(uri, target)
    assert (count_rows(uri), count_rows(target)) == (1, COMMITS)


def test_bronze_is_the_last_folder_of_a_table(tmp_path: Path):
    lake = Lake(root=tmp_path.as_uri(), pipeline="shop")

    names = [folder.name for folder in folders_of(lake, "orders")]

    assert names == ["silver", "history", "tombstones", "bronze"]


def test_a_folder_without_a_readable_log_is_no_table(uri: str):
    for commit in Path(urlsplit(uri).path).glob("_delta_log/*.json"):
        commit.write_text("{")

    assert (is_folder(uri), standing_in(uri)) == (True, None)

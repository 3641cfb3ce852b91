"""Small files of the lake on a real folder."""

from __future__ import annotations

import pytest

from cdc_lakehouse.errors import StorageUnavailableError
from cdc_lakehouse.lake import files


def test_a_text_comes_back_as_it_was_written(tmp_path):
    uri = f"{tmp_path.as_uri()}/deep/er/report.json"

    files.write_text(uri, "first")
    files.write_text(uri, "größer")

    assert files.read_text(uri) == "größer"
    assert [path.name for path in (tmp_path / "deep" / "er").iterdir()] == ["report.json"]


def test_a_file_that_is_not_there_is_missing_storage_or_nothing(tmp_path):
    uri = f"{tmp_path.as_uri()}/absent"

    with pytest.raises(StorageUnavailableError) as caught:
        files.read_text(uri)

    assert caught.value.root == uri
    assert files.read_text_if_there(uri) is None


def test_a_folder_that_cannot_be_made_is_missing_storage(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(StorageUnavailableError):
        files.write_text(f"{tmp_path.as_uri()}/file/report.json", "text")


def test_a_file_that_cannot_be_asked_for_is_missing_storage(tmp_path):
    with pytest.raises(StorageUnavailableError):
        files.read_text_if_there(f"{tmp_path.as_uri()}/{'x' * 300}")


def test_folders_are_listed_by_name_without_files(tmp_path):
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
    (tmp_path / "c").write_text("")

    found = [(folder.name, folder.uri) for folder in files.folders(tmp_path.as_uri())]

    assert found == [("a", f"{tmp_path.as_uri()}/a"), ("b", f"{tmp_path.as_uri()}/b")]


def test_a_parent_that_does_not_exist_has_no_folders(tmp_path):
    assert files.folders(f"{tmp_path.as_uri()}/absent") == []


def test_a_child_is_deleted_with_all_it_holds(tmp_path):
    (tmp_path / "parent" / "child" / "deep").mkdir(parents=True)
    (tmp_path / "parent" / "other").mkdir()

    files.delete_child(f"{tmp_path.as_uri()}/parent", "child")

    assert [path.name for path in (tmp_path / "parent").iterdir()] == ["other"]


@pytest.mark.parametrize("name", ["", ".", "..", "../parent", "a/b", "/"])
def test_only_a_strict_child_is_ever_deleted(tmp_path, name):
    (tmp_path / "parent").mkdir()

    with pytest.raises(ValueError, match="is not a child"):
        files.delete_child(f"{tmp_path.as_uri()}/parent", name)

    assert (tmp_path / "parent").is_dir()

"""The lock's rows, and what a group of them is called in the cache."""

from __future__ import annotations

import pytest

from artifacts.errors import LockFileError, UnknownGroupError
from artifacts.lock import DEFAULT_GROUPS, parse_lock, read_lock, select_groups

HASH = "a" * 64


def test_a_classifier_is_part_of_the_file_name():
    group = parse_lock([f"debezium io.debezium connector 3.7.0 tar.gz plugin 12 {HASH}"])["debezium"]
    assert group.artifacts[0].file_name == "connector-3.7.0-plugin.tar.gz"


def test_a_dash_means_no_classifier():
    group = parse_lock(["# comment", "", f"spark io.delta storage 4.4.0 jar - 12 {HASH}"])["spark"]
    assert group.artifacts[0].file_name == "storage-4.4.0.jar"
    assert group.size == 12


@pytest.mark.parametrize(
    "row", ["spark io.delta storage", f"spark o n 1 jar - many {HASH}", "spark o n 1 jar - 1 abc"]
)
def test_a_broken_row_is_named_by_its_line(row):
    with pytest.raises(LockFileError, match="line 2"):
        parse_lock(["# header", row])


def test_another_hash_gets_another_folder():
    one = parse_lock([f"spark o n 1 jar - 1 {HASH}"])["spark"]
    other = parse_lock([f"spark o n 1 jar - 1 {'b' * 64}"])["spark"]
    assert one.folder_name != other.folder_name


def test_an_unknown_group_is_refused():
    with pytest.raises(UnknownGroupError, match="spork"):
        select_groups(read_lock(), ["spork"])


def test_the_projects_lock_has_the_default_groups_and_six_jars_for_spark():
    lock = read_lock()
    assert set(DEFAULT_GROUPS) <= set(lock)
    assert len(lock["spark"].artifacts) == 6

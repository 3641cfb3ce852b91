"""Which tables OPTIMIZE writes again, and which VACUUM a night gets."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from cdc_lakehouse.lake.deletion_vectors import DeletionVector
from cdc_lakehouse.lake.health import small_file_size, target_file_size
from cdc_lakehouse.lake.snapshot import DataFile, Snapshot
from cdc_lakehouse.maintenance.plan import VacuumKind, plan_optimize, vacuum_kind, what_only_delta_keeps

MIB, GIB = 2**20, 2**30
NOW = datetime(2026, 1, 10, 3, tzinfo=UTC)


def file(number: int, *, size: int = MIB, rows: int = 10_000, hidden: int = 0) -> DataFile:
    vector = DeletionVector.from_action(
        {"storageType": "i", "pathOrInlineDv": "", "sizeInBytes": 0, "cardinality": hidden}
    )
    return DataFile(path=f"{number}.parquet", rows=rows, deleted=vector if hidden else None, size=size)


@pytest.mark.parametrize(
    ("table", "target"),
    [
        (0, 128 * MIB),
        (63 * GIB, 128 * MIB),
        (64 * GIB, 256 * MIB),
        (255 * GIB, 512 * MIB),
        (256 * GIB, GIB),
        (9_000 * GIB, GIB),
    ],
)
def test_files_of_a_large_table_are_large(table, target):
    assert (target_file_size(table), small_file_size(table)) == (target, target // 4)


def test_five_small_files_are_packed_into_one():
    plan = plan_optimize([file(number) for number in range(5)])

    assert (plan.pays, plan.small_files, plan.saved_files) == (True, 5, 4)
    assert plan.reason == "5 files below 32 MiB can become 1, 0 files hide 0 rows (0.0%)"


def test_four_small_files_are_not_worth_a_commit():
    plan = plan_optimize([file(number) for number in range(4)])

    assert not plan.pays
    assert plan.reason == ("not worth it: 4 files below 32 MiB can become 1, 0 files hide 0 rows (0.0%)")


def test_files_that_are_large_enough_are_left_alone():
    plan = plan_optimize([file(number, size=32 * MIB) for number in range(100)])

    assert (plan.pays, plan.small_files) == (False, 0)


def test_what_optimize_leaves_is_not_small_for_the_next_target():
    left = 3 * target_file_size(63 * GIB) // 4

    assert left > small_file_size(64 * GIB)


def test_files_that_hide_a_tenth_of_their_rows_are_written_again():
    plan = plan_optimize([file(1, size=GIB, hidden=1_500), file(2, size=GIB, hidden=500), file(3, size=GIB)])

    assert (plan.purges, plan.packs, plan.hidden_files, plan.hidden_rows) == (True, False, 2, 2_000)
    assert plan.reason == "0 files below 32 MiB can become 0, 2 files hide 2000 rows (10.0%)"


def test_one_file_that_hides_many_rows_is_not_worth_all_others_with_a_vector():
    light = [file(number, size=GIB, hidden=1) for number in range(99)]

    assert not plan_optimize([file(100, size=GIB, hidden=9_000), *light]).pays


def test_a_few_hidden_rows_are_not_worth_a_commit():
    assert not plan_optimize([file(1, rows=1_000, hidden=999)]).pays


def test_a_table_without_files_is_left_alone():
    assert not plan_optimize([]).pays


def test_files_of_a_quarter_go_into_bins_of_a_target_each():
    files = [file(number, size=30 * MIB) for number in range(9)]

    assert [[each.path for each in files_of_bin] for files_of_bin in plan_optimize(files).bins] == [
        [f"{number}.parquet" for number in range(4)],
        [f"{number}.parquet" for number in range(4, 8)],
    ]


def test_large_files_with_hidden_rows_do_not_part_small_ones():
    files = [
        file(number, size=GIB if number % 2 else MIB, hidden=2_000 * (number % 2)) for number in range(10)
    ]

    bins = plan_optimize(files).bins

    assert sorted(len(each) for each in bins) == [1, 1, 1, 1, 1, 5]


def test_a_file_that_nobody_would_join_is_written_again_for_its_hidden_rows_only():
    assert plan_optimize([file(1, size=GIB), file(2, size=GIB, hidden=2_000)]).bins == (
        (file(2, size=GIB, hidden=2_000),),
    )


def test_a_table_whose_rows_have_ids_is_left_alone():
    snapshot = Snapshot("", 0, pa.schema([]), (), properties={"delta.enableRowTracking": "True"})
    left = what_only_delta_keeps(snapshot)

    plan = plan_optimize([file(number) for number in range(5)], left_to_delta=left)

    assert not plan.pays
    assert plan.reason.startswith("left alone: delta.enableRowTracking needs Delta's own OPTIMIZE; 5 ")


@pytest.mark.parametrize(
    ("features", "left"),
    [
        ({"deletionVectors", "appendOnly"}, None),
        ({"deletionVectors", "clustering"}, "clustering"),
        ({"generatedColumns", "allowColumnDefaults"}, "allowColumnDefaults, generatedColumns"),
    ],
)
def test_features_that_our_files_do_not_know_are_left_to_delta(features, left):
    snapshot = Snapshot("", 0, pa.schema([]), (), writer_features=frozenset(features))

    assert what_only_delta_keeps(snapshot) == left


def test_one_commit_replaces_eight_bins_at_most():
    plan = replace(plan_optimize([]), bins=tuple((file(number),) for number in range(17)))

    assert [len(batch) for batch in plan.batches] == [8, 8, 1]


@pytest.mark.parametrize(
    ("last_full", "kind"),
    [
        (None, VacuumKind.FULL),
        (NOW - timedelta(days=1), VacuumKind.LITE),
        (NOW - timedelta(days=6), VacuumKind.LITE),
        (NOW - timedelta(days=6, hours=23, minutes=50), VacuumKind.FULL),
        (NOW - timedelta(days=8), VacuumKind.FULL),
    ],
)
def test_vacuum_lists_the_folder_once_a_week(last_full, kind):
    assert vacuum_kind(last_full, now=NOW) is kind

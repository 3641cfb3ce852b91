"""What a reader may find while a repair is carried out, and what not."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from crash.repairs import contents_of, half_done  # type: ignore[import-not-found]

SILVER = "silver/crash/orders"
TOMBSTONES = "silver/crash/orders__tombstones"


def lake(root: Path, **tables: list[int]) -> Path:
    for name, ids in tables.items():
        write_deltalake(str(root / "silver/crash" / name), pa.table({"id": pa.array(ids, pa.int64())}))
    return root


@pytest.fixture
def before(tmp_path):
    return contents_of(lake(tmp_path / "before", orders=[1, 2], orders__tombstones=[3]))


@pytest.fixture
def after(tmp_path):
    return contents_of(lake(tmp_path / "after", orders=[1, 5], orders__tombstones=[4]))


@pytest.mark.parametrize(
    "tables",
    [
        {"orders": [1, 2], "orders__tombstones": [3]},
        {"orders": [5, 1], "orders__tombstones": [3]},
        {"orders": [1, 5], "orders__tombstones": [4, 3]},
    ],
)
def test_each_table_may_be_as_before_or_as_after_and_tombstones_may_be_both(tmp_path, before, after, tables):
    root = lake(tmp_path / "now", **tables)

    assert half_done(root, before=before, after=after).is_clean


def test_rows_of_neither_are_half_done(tmp_path, before, after):
    root = lake(tmp_path / "now", orders=[1], orders__tombstones=[3])

    found = half_done(root, before=before, after=after)

    assert (found.half_written, found.sentences) == (
        1,
        [f"half_written 1: {SILVER} is neither as before nor as after"],
    )


def test_a_table_that_is_deleted_may_be_gone_and_no_other_one(tmp_path, before, after):
    root = lake(tmp_path / "now", orders=[1, 2])

    assert half_done(root, before=before, after={**after, TOMBSTONES: None}).is_clean
    assert half_done(root, before=before, after=after).half_written == 1

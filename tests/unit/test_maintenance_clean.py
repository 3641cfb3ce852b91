"""Which scratch checkpoints go: the old ones of attempts, and nothing else (`guarantees` §2.8)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cdc_lakehouse.lake.attempts import AttemptRecord
from cdc_lakehouse.lake.names import SHARED, Lake
from cdc_lakehouse.maintenance.clean import clean_checkpoints, plan_clean

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)
DAY = timedelta(days=1)
OLD, YOUNG = "20260109T115959Z-0badcafe", "20260109T120000Z-0badcafe"


@pytest.fixture
def lake(tmp_path) -> Lake:
    lake = Lake(root=tmp_path.as_uri(), pipeline="shop")
    for name in (OLD, YOUNG, "by-hand"):
        (tmp_path / "_ops/shop/checkpoints/orders" / name / "offsets").mkdir(parents=True)
    (tmp_path / "_ops/shop/checkpoints/customers" / OLD).mkdir(parents=True)
    (tmp_path / "_ops/shop/checkpoints/orders/20250101T000000Z-0badcafe").write_text("a file")
    return lake


def left(tmp_path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "_ops/shop/checkpoints/orders").iterdir())


def test_an_attempt_older_than_the_retention_is_chosen():
    assert plan_clean([OLD, YOUNG], records={}, now=NOW, retention=DAY) == [OLD]


def test_the_checkpoint_of_a_query_over_many_tables_is_chosen_too():
    names = [f"{OLD}{SHARED}0", f"{YOUNG}{SHARED}1"]

    assert plan_clean(names, records={}, now=NOW, retention=DAY) == [f"{OLD}{SHARED}0"]


@pytest.mark.parametrize("name", [OLD, f"{OLD}{SHARED}0"])
@pytest.mark.parametrize(
    ("seen", "ended", "chosen"),
    [
        (NOW, None, False),  # it runs longer than the retention
        (NOW - DAY, NOW - timedelta(hours=1), False),  # it ran long and has just ended
        (NOW - 2 * DAY, NOW - 2 * DAY, True),
        (NOW - 2 * DAY, None, True),  # it was killed
    ],
)
def test_the_retention_counts_from_the_end_of_the_attempt(name, seen, ended, chosen):
    record = AttemptRecord(OLD, "bronze_ingest", began=NOW - 3 * DAY, seen=seen, ended=ended)

    assert plan_clean([name], records={OLD: record}, now=NOW, retention=DAY) == ([name] if chosen else [])


@pytest.mark.parametrize(
    "name",
    [
        "by-hand",
        "20250101T000000Z",
        "20250101T000000Z-keep",
        "20250101T000000Z-0badcafe-copy",
        "20251301T000000Z-0badcafe",
        "x20250101T000000Z-0badcafe",
    ],
)
def test_a_name_that_is_not_an_attempts_is_left_alone(name):
    assert plan_clean([name], records={}, now=NOW, retention=DAY) == []


def test_cleaning_deletes_old_folders_of_that_table_only(lake, tmp_path):
    assert clean_checkpoints(lake, "orders", records={}, now=NOW, retention=DAY, dry_run=False) == 1

    assert left(tmp_path) == ["20250101T000000Z-0badcafe", YOUNG, "by-hand"]
    assert (tmp_path / "_ops/shop/checkpoints/customers" / OLD).is_dir()


def test_a_dry_run_counts_and_deletes_nothing(lake, tmp_path):
    assert clean_checkpoints(lake, "orders", records={}, now=NOW, retention=DAY, dry_run=True) == 1

    assert OLD in left(tmp_path)


def test_cleaning_twice_deletes_nothing_more(lake):
    clean_checkpoints(lake, "orders", records={}, now=NOW, retention=DAY, dry_run=False)

    assert clean_checkpoints(lake, "orders", records={}, now=NOW, retention=DAY, dry_run=False) == 0


def test_a_table_without_checkpoints_has_nothing_to_clean(lake):
    assert clean_checkpoints(lake, "unknown", records={}, now=NOW, retention=DAY, dry_run=False) == 0

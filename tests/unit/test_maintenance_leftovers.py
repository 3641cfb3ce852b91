"""What the cleanup deletes beside the tables, and what it leaves alone."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.session import LazySession
from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.contract import Job, JobRequest
from cdc_lakehouse.lake.attempts import AttemptRecord
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.maintenance.job import clean_tables
from cdc_lakehouse.maintenance.leftovers import (
    TemporaryFolder,
    clean_reports,
    clean_temporary_folders,
    lost_checkpoints,
    lost_state,
    plan_report_days,
    plan_temporary,
)

NOW = datetime(2026, 1, 31, 3, tzinfo=UTC)
DAY = timedelta(days=1)
MONTH = 30 * DAY
ATTEMPT = "20260101T000000Z-0badcafe"


def days(first: date, count: int) -> list[str]:
    return [(first + number * DAY).isoformat() for number in range(count)]


@pytest.fixture
def lake(tmp_path) -> Lake:
    return Lake(root=tmp_path.as_uri(), pipeline="shop")


def made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    return path


def test_reports_of_days_before_the_retention_are_chosen():
    names = days(date(2025, 12, 30), 33)

    assert plan_report_days(names, now=NOW, retention=MONTH) == ["2025-12-30", "2025-12-31"]


def test_the_newest_seven_days_with_reports_stay_however_old_they_are():
    names = days(date(2024, 1, 1), 9)

    assert plan_report_days(names, now=NOW, retention=MONTH) == ["2024-01-01", "2024-01-02"]


def test_folders_that_are_no_days_are_left_alone():
    names = [*days(date(2026, 1, 20), 7), "2024-13-01", "20240101", "by-hand", "2024-01-01-copy"]

    assert plan_report_days(names, now=NOW, retention=MONTH) == []


def test_cleaning_reports_counts_attempts_and_deletes_their_day(lake, tmp_path):
    runs = tmp_path / "_ops/shop/runs"
    for day in ("2024-01-01", *days(date(2026, 1, 20), 7)):
        for attempt in ("a", "b"):
            made(runs / day / attempt / "optimize/_summary.json")

    assert clean_reports(lake, now=NOW, retention=MONTH, dry_run=True) == 2
    assert clean_reports(lake, now=NOW, retention=MONTH, dry_run=False) == 2
    assert clean_reports(lake, now=NOW, retention=MONTH, dry_run=False) == 0
    assert sorted(path.name for path in runs.iterdir()) == days(date(2026, 1, 20), 7)


@pytest.mark.parametrize(
    ("seen", "ended", "is_chosen"),
    [
        (NOW, None, False),  # it is alive
        (NOW - 2 * DAY, NOW - 2 * DAY, True),
        (NOW - 2 * DAY, None, True),  # it was killed
        (NOW - timedelta(hours=2), None, False),  # it was killed within the retention
    ],
)
def test_the_temporary_folder_of_an_attempt_goes_when_its_record_says_that_it_ended(seen, ended, is_chosen):
    folder = TemporaryFolder(f"cdc_lakehouse-{ATTEMPT}", NOW - MONTH)
    record = AttemptRecord(ATTEMPT, "bronze_ingest", began=NOW - MONTH, seen=seen, ended=ended)

    chosen = plan_temporary([folder], records={ATTEMPT: record}, now=NOW, retention=DAY, unknown_for=7 * DAY)

    assert chosen == ([folder.name] if is_chosen else [])


@pytest.mark.parametrize(("age", "is_chosen"), [(6 * DAY, False), (8 * DAY, True)])
def test_a_temporary_folder_without_a_record_goes_when_it_is_too_old(age, is_chosen):
    folder = TemporaryFolder("cdc_lakehouse_abcd_123", NOW - age)

    chosen = plan_temporary([folder], records={}, now=NOW, retention=DAY, unknown_for=7 * DAY)

    assert chosen == ([folder.name] if is_chosen else [])


def test_only_our_temporary_folders_are_deleted(tmp_path):
    old = (NOW - MONTH).timestamp()
    for name in (f"cdc_lakehouse-{ATTEMPT}", "cdc_lakehouse_abcd_123", "cdc_lakehouse_notes", "spark-1"):
        made(tmp_path / name / "offsets" / "0")
        os.utime(tmp_path / name, (old, old))
    (tmp_path / "cdc_lakehouse_link_123").symlink_to(tmp_path / "spark-1")

    def cleaned(*, dry_run: bool) -> int:
        return clean_temporary_folders(
            tmp_path, records={}, now=NOW, retention=DAY, unknown_for=7 * DAY, dry_run=dry_run
        )

    assert [cleaned(dry_run=True), cleaned(dry_run=False), cleaned(dry_run=False)] == [2, 2, 0]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "cdc_lakehouse_link_123",
        "cdc_lakehouse_notes",
        "spark-1",
    ]
    assert (tmp_path / "spark-1/offsets/0").exists()


def test_state_is_lost_when_neither_pipeline_nor_lake_has_its_table(lake, tmp_path):
    operations = tmp_path / "_ops/shop"
    for folder in ("verify", "maintenance/optimize", "maintenance/vacuum"):
        for table in ("listed", "in_lake", "gone"):
            made(operations / folder / f"{table}.json")
        made(operations / folder / ".gone.json")
        made(operations / folder / "notes.txt")
    for folder in ("unread", "confirmed"):
        for group in ("main", "old"):
            made(operations / folder / f"{group}.json")
    (tmp_path / "bronze/shop/in_lake").mkdir(parents=True)

    lost = lost_state(lake, tables={"listed"}, groups={"main"})

    assert [uri.removeprefix(f"{lake.operations}/") for uri in lost] == [
        "verify/gone.json",
        "maintenance/optimize/gone.json",
        "maintenance/vacuum/gone.json",
        "confirmed/old.json",
        "unread/old.json",
    ]


def test_checkpoints_of_tables_that_left_the_pipeline_are_found(lake, tmp_path):
    for table in ("listed", "gone"):
        (tmp_path / "_ops/shop/checkpoints" / table / ATTEMPT).mkdir(parents=True)

    assert lost_checkpoints(lake, tables={"listed"}) == ["gone"]


def cleaning(lake: Lake, *tables: str, dry_run: bool = False) -> Application:
    """The cleanup of a pipeline with two tables, asked for some of them or for all."""
    pipeline = Pipeline.model_validate(
        {
            "version": 1,
            "name": "shop",
            "owner": "tests",
            "schedule": "0 * * * *",
            "start_date": date(2026, 1, 1),
            "tables": [{"name": name, "topics": [f"shop.{name}"]} for name in ("orders", "clicks")],
        }
    )
    return Application(
        request=JobRequest(job=Job.CLEAN_CHECKPOINTS, pipeline="shop", tables=tables, dry_run=dry_run),
        pipeline=pipeline,
        tables=tuple(table for table in pipeline.tables if not tables or table.name in tables),
        lake=lake,
        attempt="20260131T030000Z-00000001",
        spark=LazySession("none is started"),
    )


@pytest.fixture
def littered(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Old checkpoints of a table that is there and of one that is gone, and something of each other kind."""
    operations, temporary = tmp_path / "_ops/shop", tmp_path / "tmp"
    for table in ("orders", "gone"):
        made(operations / "checkpoints" / table / ATTEMPT / "offsets/0")
    made(operations / "verify/gone.json")
    for day in ("2024-01-01", *days(date(2026, 1, 20), 7)):
        made(operations / "runs" / day / "a/optimize/_summary.json")
    old = (NOW - MONTH).timestamp()
    made(temporary / "cdc_lakehouse_abcd_123/offsets/0")
    os.utime(temporary / "cdc_lakehouse_abcd_123", (old, old))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    return operations


CLEANED = [
    "1 reports of old runs",
    "1 temporary folders of processes that ended",
    "1 files about tables or groups that are gone",
    "1 checkpoints of tables that the pipeline no longer has",
]


def test_the_cleanup_counts_what_it_deletes_and_finds_nothing_the_second_time(lake, littered):
    first, second = cleaning(lake), cleaning(lake)

    counts = [[result.counts["checkpoints"] for result in clean_tables(each)] for each in (first, second)]

    assert counts == [[1, 0], [0, 0]]
    assert (first.notes, second.notes) == ({"cleaned": CLEANED}, {})
    assert not (littered / "verify/gone.json").exists()


def test_a_dry_run_of_the_cleanup_counts_and_deletes_nothing(lake, littered):
    application = cleaning(lake, dry_run=True)

    clean_tables(application)

    assert application.notes == {"cleaned": CLEANED}
    assert (littered / "runs/2024-01-01").exists()
    assert (littered / "checkpoints/gone" / ATTEMPT).exists()


def test_the_cleanup_of_one_table_leaves_everything_else_alone(lake, littered):
    application = cleaning(lake, "orders")

    (result,) = clean_tables(application)

    assert (result.counts, application.notes) == ({"checkpoints": 1}, {})
    assert (littered / "verify/gone.json").exists()

"""When rows of a table were erased last: no repair brings back what a table held before."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cdc_lakehouse.contract import Job, JobRequest
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.repair.plan import TablePlan
from cdc_lakehouse.repair.records import RepairRecord, newest_erasure, write_record


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(root=tmp_path.as_uri(), pipeline="shop")


def keep_record(lake: Lake, operation: Job, *, done_at: str | None, table: str = "orders") -> None:
    plan = TablePlan(operation, "shop", table, {}, {"repairs": []}, summary=str(done_at))
    request = JobRequest(job=operation, pipeline="shop", tables=(table,))
    write_record(lake, replace(RepairRecord.of_plan(plan, request), done_at=done_at))


def test_a_table_without_an_erasure_that_was_carried_out_has_none(lake):
    keep_record(lake, Job.REBUILD, done_at="2026-01-03T00:00:00+00:00")
    keep_record(lake, Job.ERASE, done_at=None)
    keep_record(lake, Job.ERASE, done_at="2026-01-03T00:00:00+00:00", table="customers")

    assert newest_erasure(lake, "orders") is None


def test_the_newest_erasure_counts(lake):
    for day in ("02", "03", "01"):
        keep_record(lake, Job.ERASE, done_at=f"2026-01-{day}T00:00:00+00:00")

    assert newest_erasure(lake, "orders") == datetime(2026, 1, 3, tzinfo=UTC)

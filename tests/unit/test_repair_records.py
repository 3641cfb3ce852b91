"""Records of repairs tell which of them a later repair must respect."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from cdc_lakehouse.contract import Job
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.repair.plan import TablePlan
from cdc_lakehouse.repair.records import RepairRecord, completed_repairs, newest_erasure, write_record


def record_of(operation: Job, *, approved: str | None, done: str | None = None) -> RepairRecord:
    plan = TablePlan(operation, "shop", "orders", options={}, basis={"approved": approved})
    return RepairRecord(
        plan, planned={}, approved=None if approved is None else {"at": approved}, done_at=done
    )


def test_an_erasure_counts_from_its_approval_until_it_is_done(tmp_path: Path):
    lake = Lake(root=tmp_path.as_uri(), pipeline="shop")
    planned = record_of(Job.ERASE, approved=None)
    approved = record_of(Job.ERASE, approved="2026-01-02T10:00:00+00:00")
    other = record_of(Job.REBUILD, approved="2026-01-03T10:00:00+00:00", done="2026-01-03T11:00:00+00:00")

    times = []
    for record in (planned, other, approved, replace(approved, done_at="2026-01-02T12:00:00+00:00")):
        write_record(lake, record)
        times.append(newest_erasure(lake, "orders"))

    assert times == [
        None,
        None,
        datetime(2026, 1, 2, 10, tzinfo=UTC),
        datetime(2026, 1, 2, 12, tzinfo=UTC),
    ]
    assert completed_repairs(lake, "orders") == tuple(sorted({other.plan.digest, approved.plan.digest}))

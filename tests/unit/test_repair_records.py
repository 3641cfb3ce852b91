"""Records of repairs tell which of them a later repair must respect."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cdc_lakehouse.contract import Job
from cdc_lakehouse.errors import PlanChangedError
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.repair.plan import TablePlan
from cdc_lakehouse.repair.records import (
    RepairRecord,
    begun_repairs,
    newest_erasure,
    refuse_other_repairs,
    unfinished_repairs,
    write_record,
)

BEGAN = "2026-01-02T10:00:00+00:00"


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
    assert begun_repairs(lake, "orders") == {
        other.plan.digest: "done 2026-01-03T11:00:00+00:00",
        approved.plan.digest: "done 2026-01-02T12:00:00+00:00",
    }


def plan_of(lake: Lake) -> TablePlan:
    """Return a plan that is made now."""
    return TablePlan(
        Job.REBUILD, "shop", "orders", options={}, basis={"repairs": begun_repairs(lake, "orders")}
    )


def problem_of(lake: Lake, plan: TablePlan) -> str:
    with pytest.raises(PlanChangedError) as caught:
        refuse_other_repairs(lake, plan)
    return caught.value.problem


@pytest.mark.parametrize(
    ("operation", "way_out"),
    [
        (Job.ERASE, "or trigger that DAG again with the same form, which goes on with it"),
        (Job.RETIRE, "or trigger that DAG again with the same form, which goes on with it"),
        (Job.RESYNC, "or make a new plan, which takes its place"),
    ],
)
def test_a_plan_from_before_a_repair_began_waits_for_it_and_is_refused_for_good_behind_it(
    tmp_path: Path, operation: Job, way_out: str
):
    lake = Lake(root=tmp_path.as_uri(), pipeline="shop")
    earlier, begun = plan_of(lake), record_of(operation, approved=BEGAN)
    write_record(lake, begun)

    unfinished = problem_of(lake, earlier)
    write_record(lake, begun.with_stop("PLAN_CHANGED"))
    stopped = problem_of(lake, earlier)
    write_record(lake, begun.with_result({}, {}))
    done = problem_of(lake, earlier)

    digest = begun.plan.digest
    assert unfinished == (
        f"{operation} of plan {digest} began at {BEGAN} and is not finished; "
        f"clear the task `act` of its run of `cdc_shop_{operation}` first, {way_out}"
    )
    assert stopped == done == f"another repair of the table has begun since ({digest})"


@pytest.mark.parametrize("operation", [Job.ERASE, Job.RETIRE])
def test_an_unfinished_erasure_or_retirement_is_finished_before_any_other_plan(
    tmp_path: Path, operation: Job
):
    lake = Lake(root=tmp_path.as_uri(), pipeline="shop")
    begun = record_of(operation, approved=BEGAN)
    write_record(lake, begun)

    assert "is not finished" in problem_of(lake, plan_of(lake))


def test_a_stopped_repair_is_not_waited_for_and_one_that_is_tried_again_is(tmp_path: Path):
    lake = Lake(root=tmp_path.as_uri(), pipeline="shop")
    stopped = record_of(Job.ERASE, approved=BEGAN).with_stop("FILE_DAMAGED")
    write_record(lake, stopped)
    plan = plan_of(lake)

    goes_on = refuse_other_repairs(lake, plan)
    write_record(lake, stopped.with_try("attempt"))

    assert (goes_on, unfinished_repairs(lake, "orders")) == ((), (stopped.with_try("attempt"),))
    assert "is not finished" in problem_of(lake, plan)


def test_a_plan_takes_the_place_of_what_it_has_seen_unfinished_and_of_that_only(tmp_path: Path):
    lake = Lake(root=tmp_path.as_uri(), pipeline="shop")
    begun = record_of(Job.RESYNC, approved=BEGAN)
    write_record(lake, begun)
    plan = plan_of(lake)

    replaced = refuse_other_repairs(lake, plan)
    write_record(lake, begun.with_stop("another plan took its place", by=plan.digest))
    tried_again = refuse_other_repairs(lake, plan)
    write_record(lake, begun.with_result({}, {}))

    assert ([record.plan.digest for record in replaced], tried_again) == ([begun.plan.digest], ())
    assert problem_of(lake, plan) == f"another repair of the table has begun since ({begun.plan.digest})"

"""What the steps of all repairs share: one begins, ends, waits for others or takes their place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.session import LazySession
from cdc_lakehouse.config.models import Pipeline, Table
from cdc_lakehouse.contract import Job, JobRequest, TableError, TableResult, TableStatus
from cdc_lakehouse.errors import RepairRefusedError, SupersededError
from cdc_lakehouse.lake.attempts import RunningAttempt
from cdc_lakehouse.lake.names import Lake, new_attempt
from cdc_lakehouse.repair.operation import Outcome, repair
from cdc_lakehouse.repair.plan import TablePlan
from cdc_lakehouse.repair.records import RepairRecord, begun_repairs, read_record, write_record
from cdc_lakehouse.run_modes import RepairStep

ORDERS = Table(name="orders", topics=("shop.orders",))
KILLED = SupersededError(table="orders", seq=0, attempt="killed")
REFUSED = RepairRefusedError(operation="rebuild", table="orders", problem="its silver is gone")


def nothing() -> None:
    """Do nothing."""


@dataclass
class Harmless:
    """A repair that changes nothing but its record. `fails` is raised by the next try."""

    job: Job = Job.REBUILD
    options: frozenset[str] = frozenset()
    fails: Exception | None = None
    when_it_begins: Callable[[], None] = nothing
    carried_out: list[str] = field(default_factory=list)

    def plan(self, application: Application, table: Table) -> TablePlan:
        basis = {"repairs": begun_repairs(application.lake, table.name)}
        return TablePlan(self.job, application.pipeline.name, table.name, options={}, basis=basis)

    def facts_before(self, application: Application, table: Table) -> Mapping[str, Any]:
        self.when_it_begins()
        return {"before": len(self.carried_out)}

    def act(self, application: Application, table: Table, plan: TablePlan) -> Outcome:
        if self.fails is not None:
            raise self.fails
        self.carried_out.append(plan.digest)
        return Outcome()

    def verify(self, application: Application, table: Table, record: RepairRecord) -> Outcome:
        return Outcome()


@dataclass
class Steps:
    lake: Lake

    def take(self, operation: Harmless, step: RepairStep, digest: str = "") -> TableResult:
        request = JobRequest(
            job=operation.job,
            pipeline="shop",
            tables=("orders",),
            step=step,
            plans=(f"orders={digest}",) if digest else (),
        )
        document = {
            "version": 1,
            "name": "shop",
            "owner": "tests",
            "schedule": "0 * * * *",
            "start_date": date(2026, 1, 1),
            "tables": [ORDERS.model_dump()],
        }
        application = Application(
            request=request,
            pipeline=Pipeline.model_validate(document),
            tables=(ORDERS,),
            lake=self.lake,
            attempt=new_attempt(datetime.now(UTC)),
            spark=LazySession("unused"),
        )
        (result,) = repair(operation)(application)
        return result

    def plan(self, operation: Harmless) -> TableResult:
        return self.take(operation, RepairStep.PLAN)

    def act(self, operation: Harmless, plan: TableResult, *, fails: Exception | None = None) -> TableResult:
        operation.fails = fails
        return self.take(operation, RepairStep.ACT, plan.plan["digest"])

    def record(self, plan: TableResult) -> RepairRecord:
        return read_record(self.lake, "orders", plan.plan["digest"])


@pytest.fixture
def steps(tmp_path: Path) -> Steps:
    return Steps(Lake(root=tmp_path.as_uri(), pipeline="shop"))


def error_of(result: TableResult) -> TableError:
    assert result.error is not None
    return result.error


def test_a_killed_repair_is_finished_before_one_that_was_planned_earlier(steps: Steps):
    first, second = Harmless(), Harmless(Job.REWIND)
    plan, earlier = steps.plan(first), steps.plan(second)
    steps.act(first, plan, fails=KILLED)

    waits = steps.act(second, earlier)
    finished = steps.act(first, plan)
    too_late = steps.act(second, earlier)

    digest = plan.plan["digest"]
    assert error_of(waits).code == error_of(too_late).code == "PLAN_CHANGED"
    assert f"rebuild of plan {digest} began at" in error_of(waits).sentence
    assert "clear the task `act` of its run of `cdc_shop_rebuild` first" in error_of(waits).sentence
    assert f"another repair of the table has begun since ({digest})" in error_of(too_late).sentence
    assert (finished.status, first.carried_out, second.carried_out) == (TableStatus.REPAIRED, [digest], [])


@pytest.mark.parametrize(
    ("error", "why"), [(REFUSED, "REPAIR_REFUSED"), (ValueError("a value of a row"), "BUG")]
)
def test_a_repair_that_ends_with_an_error_that_stays_keeps_nobody_waiting_and_may_be_tried_again(
    steps: Steps, error: Exception, why: str
):
    first, second = Harmless(), Harmless(Job.REWIND)
    plan = steps.plan(first)
    steps.act(first, plan, fails=error)
    stopped = steps.record(plan).stopped
    later = steps.plan(second)

    again = steps.act(first, plan)
    refused = steps.act(second, later)
    done = steps.act(second, steps.plan(second))

    assert stopped is not None
    assert stopped["why"] == why
    assert (again.status, steps.record(plan).stopped) == (TableStatus.REPAIRED, None)
    assert error_of(refused).code == "PLAN_CHANGED"
    assert (done.status, later.plan["details"]) == (TableStatus.REPAIRED, ())


def test_a_plan_that_was_made_since_takes_the_place_of_an_unfinished_repair_and_says_so(steps: Steps):
    first, second = Harmless(Job.RESYNC), Harmless()
    plan = steps.plan(first)
    steps.act(first, plan, fails=KILLED)

    later = steps.plan(second)
    steps.act(second, later, fails=KILLED)
    done = steps.act(second, later)
    refused = steps.act(first, plan)
    stopped = steps.record(plan).stopped

    digest = later.plan["digest"]
    assert [line.partition(" is not finished: ")[2] for line in later.plan["details"]] == [
        "carrying this out takes its place."
    ]
    assert (done.status, error_of(refused).code, first.carried_out) == (
        TableStatus.REPAIRED,
        "PLAN_CHANGED",
        [],
    )
    assert stopped is not None
    assert (stopped["why"], stopped["by"]) == ("another plan took its place", digest)
    assert steps.plan(Harmless()).plan["details"] == ()


@pytest.mark.parametrize("job", [Job.ERASE, Job.RETIRE])
def test_no_other_plan_is_made_while_an_erasure_or_a_retirement_is_unfinished(steps: Steps, job: Job):
    first = Harmless(job)
    plan = steps.plan(first)
    steps.act(first, plan, fails=KILLED)

    refused = steps.plan(Harmless())
    steps.act(first, plan)

    assert error_of(refused).code == "REPAIR_REFUSED"
    assert f"{job} of plan {plan.plan['digest']} began at" in error_of(refused).sentence
    assert steps.plan(Harmless()).error is None


def test_the_place_of_a_try_that_may_still_write_is_not_taken(steps: Steps):
    first, second = Harmless(), Harmless(Job.REWIND)
    plan = steps.plan(first)
    steps.act(first, plan, fails=KILLED)
    later = steps.plan(second)
    began = datetime.now(UTC) - timedelta(minutes=5)
    RunningAttempt(steps.lake, steps.record(plan).tried_by, job="rebuild", clock=lambda: began).beat()

    waits = steps.act(second, later)
    finished = steps.act(first, plan)

    assert (error_of(waits).code, second.carried_out) == ("REPAIR_WAITS", [])
    assert finished.status is TableStatus.REPAIRED


def test_of_two_repairs_that_begin_in_the_same_moment_no_more_than_one_goes_on(steps: Steps):
    first, second = Harmless(), Harmless(Job.REWIND)
    plan, other = steps.plan(first), steps.plan(second)
    begun = steps.record(other).with_approval(
        JobRequest(job=Job.REWIND, pipeline="shop", tables=("orders",)), {}
    )

    refused = steps.act(replace(first, when_it_begins=lambda: write_record(steps.lake, begun)), plan)
    also_refused = steps.act(second, other)

    assert "rewind of plan" in error_of(refused).sentence
    assert error_of(also_refused).code == "PLAN_CHANGED"
    assert first.carried_out == second.carried_out == []


def test_what_undo_needs_is_kept_from_before_the_first_try(steps: Steps):
    first = Harmless()
    plan = steps.plan(first)
    steps.act(first, plan, fails=REFUSED)
    first.carried_out.append("a change of the first try")
    steps.act(first, plan)

    assert steps.record(plan).facts == {"before": 0}

"""What every kind of repair must be able to do, and the steps that they share."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol, assert_never

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.discovered import with_discovered
from cdc_lakehouse.application.failures import as_table_error, translated
from cdc_lakehouse.application.main import Work
from cdc_lakehouse.application.per_table import each_table
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.config.values import duration
from cdc_lakehouse.contract import ExitCode, Job, TableResult, TableStatus, table_named_by
from cdc_lakehouse.errors import PlanChangedError, RepairRefusedError, RepairWaitsError, UnknownNameError
from cdc_lakehouse.lake.attempts import read_attempts
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.repair.plan import TablePlan
from cdc_lakehouse.repair.records import (
    RepairRecord,
    in_words,
    may_be_replaced,
    read_record,
    refuse_other_repairs,
    unfinished_repairs,
    way_out_of,
    write_record,
)
from cdc_lakehouse.run_modes import RepairStep

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step has done, or found."""

    counts: Mapping[str, int] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Kept in the record, for verification and undo."""
    summary: str = ""


class Operation(Protocol):
    """One kind of repair. The steps run as processes of their own, each may be killed and repeated."""

    job: Job
    options: frozenset[str]
    """Names of the options that it knows."""

    def plan(self, application: Application, table: Table) -> TablePlan:
        """Change nothing that readers see. `basis` holds `repairs`, the repairs of the table that have begun.

        An unfinished plan may be returned again, as it is: then `act` goes on with it.
        """
        ...

    def facts_before(self, application: Application, table: Table) -> Mapping[str, Any]:
        """Return what undo and verification must know of the table before it is changed. Called once."""
        ...

    def act(self, application: Application, table: Table, plan: TablePlan) -> Outcome:
        """Carry out an approved plan, or the rest of it after a kill; a second call changes nothing.

        Raise `PlanChangedError` where the basis of the plan is not true any more.
        """
        ...

    def verify(self, application: Application, table: Table, record: RepairRecord) -> Outcome:
        """Compare the table with what the plan promised, and clean up. Raise for a difference."""
        ...


def repair(operation: Operation) -> Work:
    """Return the work of the job of this kind of repair."""

    def work(application: Application) -> list[TableResult]:
        application = with_discovered(application)
        request = application.request
        if not request.tables:
            problem = "it names no table; a repair is about the tables that its form names"
            raise RepairRefusedError(operation=operation.job, table="nothing", problem=problem)
        unknown = UnknownNameError.of(
            "--option", request.options, known=operation.options, kind="option", pipeline=request.pipeline
        )
        if unknown is not None:
            raise unknown

        def step(table: Table) -> TableResult:
            match request.step:
                case RepairStep.PLAN | None:
                    return _plan(operation, application, table)
                case RepairStep.ACT:
                    return _act(operation, application, table)
                case RepairStep.VERIFY:
                    return _verify(operation, application, table)
            assert_never(request.step)

        return each_table(application, step)

    return work


def _plan(operation: Operation, application: Application, table: Table) -> TableResult:
    _refuse_before_planning(operation, application.lake, table)
    plan = operation.plan(application, table)
    if not plan.made_by:
        details = (*plan.details, *_replaced(application, plan))
        plan = replace(plan, details=details, made_by=application.attempt)
        if not application.request.dry_run:
            write_record(application.lake, RepairRecord.of_plan(plan, application.request))
    logger.info("repair planned", extra={"digest": plan.digest, "summary": plan.summary, **plan.effects})
    status = TableStatus.PLANNED if plan.is_needed else TableStatus.IDLE
    return TableResult(table=table.name, status=status, counts=plan.effects, plan=plan.to_report())


def _act(operation: Operation, application: Application, table: Table) -> TableResult:
    record, lake = _approved_record(operation, application, table), application.lake
    plan = record.plan
    report = plan.to_report()
    if record.is_done:
        logger.info("repair was carried out before", extra={"digest": plan.digest, "at": record.done_at})
        report["summary"] = f"was carried out at {record.done_at}; this try changed nothing"
        return TableResult(table=table.name, status=TableStatus.IDLE, plan=report)
    replaced = refuse_other_repairs(lake, plan)
    _wait_for_attempts(application, plan, replaced)
    if record.approved is None:
        record = record.with_approval(application.request, operation.facts_before(application, table))
    record = record.with_try(application.attempt)
    write_record(lake, record)
    try:
        # Again: another repair may have begun in the same moment. Of two, no one goes on.
        for other in refuse_other_repairs(lake, plan):
            write_record(lake, other.with_stop("another plan took its place", by=plan.digest))
        outcome = operation.act(application, table, plan)
    except Exception as exc:
        _note_stop(application, plan, exc)
        raise
    write_record(lake, record.with_result(outcome.counts, outcome.facts))
    logger.info("repair carried out", extra={"digest": plan.digest, **outcome.counts})
    report["summary"] = outcome.summary or "carried out"
    return TableResult(
        table=table.name,
        status=TableStatus.REPAIRED,
        counts=outcome.counts,
        plan=report,
        decisions={"repair": {"operation": plan.operation, "plan": plan.digest, "approved": record.approved}},
    )


def _refuse_before_planning(operation: Operation, lake: Lake, table: Table) -> None:
    """Raise for an unfinished repair of another kind that has to be finished first.

    A plan may take hours to compute. One of the same kind can be the unfinished one itself.
    """
    for record in unfinished_repairs(lake, table.name):
        if record.plan.operation is not operation.job and not may_be_replaced(record):
            raise _must_be_finished(operation.job, record)


def _must_be_finished(job: Job, record: RepairRecord) -> RepairRefusedError:
    problem = f"{in_words(record)}; {way_out_of(record)}"
    return RepairRefusedError(operation=job, table=record.plan.table, problem=problem)


def _replaced(application: Application, plan: TablePlan) -> list[str]:
    """Return a sentence for each unfinished repair whose place this plan would take.

    Raise for one that has to be finished: nobody should approve what cannot be carried out.
    """
    unfinished = unfinished_repairs(application.lake, plan.table)
    for record in unfinished:
        if not may_be_replaced(record):
            raise _must_be_finished(plan.operation, record)
    return [f"{in_words(record)}: carrying this out takes its place." for record in unfinished]


def _wait_for_attempts(application: Application, plan: TablePlan, replaced: Sequence[RepairRecord]) -> None:
    """Raise while a try of a repair may still write whose place this plan takes."""
    if not replaced:
        return
    now, longest = datetime.now(UTC), duration(application.pipeline.execution_timeout)
    attempts = read_attempts(application.lake, longest=longest)
    for record in replaced:
        attempt = attempts.get(record.tried_by)
        if attempt is not None and attempt.may_write(now):
            raise RepairWaitsError(
                operation=plan.operation, table=plan.table, attempt=attempt.attempt, job=attempt.job
            )


def _note_stop(application: Application, plan: TablePlan, exc: Exception) -> None:
    """Say in the record that a further try would end likewise: other repairs do not wait for it then."""
    lake = application.lake
    cause = translated(
        exc, table=plan.table, attempt=application.attempt, bootstrap="", root=application.lake.root
    )
    error = as_table_error(cause)
    if error.exit_code is not ExitCode.RETRY:
        # Read again: the try may have written to it. Of an erasure no record may hold more than the code.
        record = read_record(lake, plan.table, plan.digest)
        write_record(lake, record.with_stop(error.code))


def _verify(operation: Operation, application: Application, table: Table) -> TableResult:
    record = _approved_record(operation, application, table)
    plan = record.plan
    if not record.is_done:
        problem = "it was not carried out, so there is nothing to verify"
        raise PlanChangedError(
            operation=plan.operation, table=plan.table, digest=plan.digest, problem=problem
        )
    outcome = operation.verify(application, table, record)
    report = {**plan.to_report(), "summary": outcome.summary or "verified"}
    return TableResult(table=table.name, status=TableStatus.VERIFIED, counts=outcome.counts, plan=report)


def _approved_record(operation: Operation, application: Application, table: Table) -> RepairRecord:
    approved = application.request.plans
    digests = [plan.partition("=")[2].strip() for plan in approved if table_named_by(plan) == table.name]
    if len(digests) != 1:
        problem = "name one plan of the table, as the step `plan` printed it"
        raise RepairRefusedError(operation=operation.job, table=table.name, problem=problem)
    return read_record(application.lake, table.name, digests[0], operation=operation.job)

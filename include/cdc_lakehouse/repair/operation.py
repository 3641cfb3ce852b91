"""What every kind of repair must be able to do, and the steps that they share."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, assert_never

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.discovered import with_discovered
from cdc_lakehouse.application.main import Work
from cdc_lakehouse.application.per_table import each_table
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import Job, TableResult, TableStatus, table_named_by
from cdc_lakehouse.errors import PlanChangedError, RepairRefusedError, UnknownNameError
from cdc_lakehouse.repair.plan import TablePlan
from cdc_lakehouse.repair.records import (
    RepairRecord,
    read_record,
    refuse_other_repairs,
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
        """Change nothing that readers see. `basis` holds `repairs`, the completed repairs of the table."""
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
    plan = replace(operation.plan(application, table), made_by=application.attempt)
    if not application.request.dry_run:
        write_record(application.lake, RepairRecord.of_plan(plan, application.request))
    logger.info("repair planned", extra={"digest": plan.digest, "summary": plan.summary, **plan.effects})
    status = TableStatus.PLANNED if plan.is_needed else TableStatus.IDLE
    return TableResult(table=table.name, status=status, counts=plan.effects, plan=plan.to_report())


def _act(operation: Operation, application: Application, table: Table) -> TableResult:
    record = _approved_record(operation, application, table)
    plan = record.plan
    report = plan.to_report()
    if record.is_done:
        logger.info("repair was carried out before", extra={"digest": plan.digest, "at": record.done_at})
        report["summary"] = f"was carried out at {record.done_at}; this try changed nothing"
        return TableResult(table=table.name, status=TableStatus.IDLE, plan=report)
    refuse_other_repairs(application.lake, plan)
    if record.approved is None:
        facts = operation.facts_before(application, table)
        record = record.with_approval(application.request, facts)
        write_record(application.lake, record)
    outcome = operation.act(application, table, plan)
    write_record(application.lake, record.with_result(outcome.counts, outcome.facts))
    logger.info("repair carried out", extra={"digest": plan.digest, **outcome.counts})
    report["summary"] = outcome.summary or "carried out"
    return TableResult(
        table=table.name,
        status=TableStatus.REPAIRED,
        counts=outcome.counts,
        plan=report,
        decisions={"repair": {"operation": plan.operation, "plan": plan.digest, "approved": record.approved}},
    )


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

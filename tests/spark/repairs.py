"""The steps of a repair on a lake of a test, as its job takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from chain import Chain  # type: ignore[import-not-found]

from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import TableError, TableResult
from cdc_lakehouse.repair.operation import Operation, repair
from cdc_lakehouse.run_modes import RepairStep

NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


def take_step(
    chain: Chain,
    table: Table,
    operation: Operation,
    step: RepairStep,
    *,
    digest: str = "",
    options: Mapping[str, str] = NO_OPTIONS,
    approved_by: str | None = "eve",
) -> TableResult:
    """Return the result of one step of a repair of `table`, which may have failed."""
    application = chain.application(table, job=operation.job)
    plans = (f"{table.name}={digest}",) if digest else ()
    request = replace(
        application.request,
        tables=(table.name,),
        step=step,
        plans=plans,
        options=options,
        approved_by=approved_by if step is RepairStep.ACT else None,
    )
    (result,) = repair(operation)(replace(application, request=request))
    return result


def make_plan(
    chain: Chain, table: Table, operation: Operation, options: Mapping[str, str] = NO_OPTIONS
) -> TableResult:
    return take_step(chain, table, operation, RepairStep.PLAN, options=options)


def carry_out(chain: Chain, table: Table, operation: Operation, plan: TableResult) -> TableResult:
    return take_step(chain, table, operation, RepairStep.ACT, digest=plan.plan["digest"])


def verify(chain: Chain, table: Table, operation: Operation, plan: TableResult) -> TableResult:
    return take_step(chain, table, operation, RepairStep.VERIFY, digest=plan.plan["digest"])


def error_of(result: TableResult) -> TableError:
    assert result.error is not None
    return result.error

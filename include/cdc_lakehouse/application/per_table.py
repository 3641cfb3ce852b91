"""Work through the tables of a group so that no table's failure stops another."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from typing import TypeVar

from cdc_lakehouse import log
from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.failures import as_table_error, translated
from cdc_lakehouse.config.models import Pipeline, Table
from cdc_lakehouse.contract import ExitCode, Job, TableResult, TableStatus
from cdc_lakehouse.debezium.signals import SnapshotKind, snapshot_advice
from cdc_lakehouse.errors import LakehouseError, SupersededError

logger = logging.getLogger(__name__)

_PER_CORE = 2
"""Small tables spend their time in the driver, waiting: measured 1.8x with four of them on two cores."""
_MOST = 16

Found = TypeVar("Found")


class UnfinishedError(Exception):
    """A table failed, for the reason that is its cause, after it had done something."""

    def __init__(self, so_far: TableResult) -> None:
        super().__init__(so_far)
        self.so_far = so_far


def each_table(
    application: Application,
    work: Callable[[Table], Found],
    *,
    tables: Iterable[Table] | None = None,
    bootstrap: str = "",
    at_once: int | None = None,
) -> list[Found | TableResult]:
    """What `work` says of each table, in their order; a failed result where it raised.

    `at_once` run side by side: by default as many as the pipeline says.
    """
    chosen = application.tables if tables is None else tuple(tables)

    def guarded(table: Table) -> Found | TableResult:
        with log.bound(table=table.name):
            try:
                return work(table)
            except Exception as exc:  # noqa: BLE001 - a table's failure, of whatever kind, is its own
                stopped = exc if isinstance(exc, UnfinishedError) else None
                cause = translated(
                    exc if stopped is None else stopped.__cause__ or stopped,
                    table=table.name,
                    attempt=application.attempt,
                    bootstrap=bootstrap,
                    root=application.lake.root,
                )
                so_far = None if stopped is None else stopped.so_far
                result = failed(table.name, cause, so_far=so_far)
                return with_way_out(result, cause, table, pipeline=application.pipeline)

    limit = at_once or tables_at_once(application.pipeline, chosen, cores=os.cpu_count() or 1)
    with ThreadPoolExecutor(max_workers=limit, thread_name_prefix="table") as pool:
        # A thread starts with no context of its own: it gets the facts bound to log lines here.
        futures = [pool.submit(copy_context().run, guarded, table) for table in chosen]
        return [future.result() for future in futures]


def with_way_out(
    result: TableResult, cause: BaseException, table: Table, *, pipeline: Pipeline
) -> TableResult:
    """Return the result of a failed table; its advice ends with the form and the statement that it names."""
    if result.error is None or not isinstance(cause, LakehouseError):
        return result
    advice = [result.error.advice]
    # A resync takes a snapshot, waits for its end, and removes what the source does not have.
    repairs = [*filter(None, [cause.repair]), *([Job.RESYNC] if cause.snapshot else [])]
    if repairs:
        dags = " or ".join(f"`cdc_{pipeline.name}_{repair}`" for repair in repairs)
        form = json.dumps({"tables": [table.name], **cause.repair_options})
        advice.append(f"The repair: DAG {dags}, with the form {form}.")
    if cause.snapshot:
        kind = SnapshotKind(cause.snapshot)
        advice.append(snapshot_advice(kind, table.topics, signals=pipeline.signal_table))
    return replace(result, error=replace(result.error, advice=" ".join(advice)))


def tables_at_once(pipeline: Pipeline, tables: Iterable[Table], *, cores: int) -> int:
    """What the group says, else the pipeline, else what the cores of this machine carry."""
    groups = {table.group for table in tables}
    told = pipeline.tables_at_once_by_group.get(groups.pop()) if len(groups) == 1 else None
    return told or pipeline.tables_at_once or min(_MOST, _PER_CORE * cores)


def failed(table: str, exc: BaseException, *, so_far: TableResult | None = None) -> TableResult:
    """The result of a table that an exception ended; a bug keeps its traceback in the log."""
    error = as_table_error(exc)
    if error.exit_code is ExitCode.BUG:
        logger.error("unexpected failure", exc_info=exc)
    status = TableStatus.SUPERSEDED if isinstance(exc, SupersededError) else TableStatus.FAILED
    return replace(so_far or TableResult(table=table, status=status), status=status, error=error)

"""Run a job as a process: arguments in; log lines, reports, result file and exit code out."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from cdc_lakehouse import log
from cdc_lakehouse.application.application import Application, attempt_now
from cdc_lakehouse.application.command import parse
from cdc_lakehouse.application.failures import as_table_error
from cdc_lakehouse.contract import (
    ENV_RESULT,
    HAS_WORK,
    Job,
    JobRequest,
    JobResult,
    TableResult,
    TableStatus,
)
from cdc_lakehouse.errors import IntervalIncompleteError, LakehouseError
from cdc_lakehouse.lake.reports import write_reports

logger = logging.getLogger(__name__)

_FEW = 5

Work = Callable[[Application], list[TableResult]]


def run(job: Job, work: Work) -> int:
    """Exit code for `sys.exit`. Nothing is raised: whatever happens has a code and a last line."""
    log.configure()
    request = parse(sys.argv[1:], job=job)
    attempt = attempt_now()
    with log.bound(pipeline=request.pipeline, attempt=attempt):
        application, result = _worked(request, work, attempt=attempt)
        if application is not None:
            result = _reported(application, result)
        _hand_over(result)
        logger.info("job finished", extra={"exit_code": int(result.exit_code), "headline": result.headline()})
    return int(result.exit_code)


def run_look(job: Job, looked: Work) -> int:
    """Exit code for `sys.exit`: the job's where the job could do nothing, and so are result and reports.

    In all other cases, failures included, nothing is handed over or reported: the job itself must run.
    """
    log.configure()
    request = parse(sys.argv[1:], job=job)
    attempt = attempt_now()
    with log.bound(pipeline=request.pipeline, attempt=attempt):
        application, result = _worked(request, looked, attempt=attempt)
        if application is not None and leaves_nothing(result):
            result = _reported(application, result)
        if not leaves_nothing(result):
            busy = [table.table for table in result.tables if not _is_done(table)]
            logger.info("not idle: the job starts", extra={"tables": len(busy), "first": busy[:_FEW]})
            return HAS_WORK
        _hand_over(result)
        logger.info("nothing to do", extra={"tables": len(result.tables), "seconds": result.seconds["all"]})
    return int(result.exit_code)


def leaves_nothing(result: JobResult) -> bool:
    """Return whether each table was looked at and the job could do nothing for any of them."""
    return result.error is None and all(map(_is_done, result.tables))


def _is_done(table: TableResult) -> bool:
    """Return whether a table is idle, or misses what nobody has any more."""
    is_lost = table.error is not None and table.error.code == IntervalIncompleteError.code
    return is_lost or table.status is TableStatus.IDLE


def _worked(request: JobRequest, work: Work, *, attempt: str) -> tuple[Application | None, JobResult]:
    """The application is None when the request or its surroundings did not allow one."""
    started = time.monotonic()
    application: Application | None = None
    tables: list[TableResult] = []
    error, seconds = None, {}
    try:
        application = Application.from_request(request, attempt=attempt)
        tables = work(application)
    except LakehouseError as exc:
        error = as_table_error(exc)
        logger.error("job failed", extra={"code": error.code, "sentence": error.sentence})  # noqa: TRY400
    except Exception as exc:
        error = as_table_error(exc)
        logger.exception("job failed", extra={"code": error.code})
    finally:
        if application is not None:
            seconds["session"] = round(application.spark.seconds, 3)
            application.end()
    result = JobResult(
        job=request.job,
        pipeline=request.pipeline,
        attempt=attempt,
        tables=tuple(tables),
        error=error,
        seconds={**seconds, "all": round(time.monotonic() - started, 3)},
        notes={} if application is None else dict(application.notes),
    )
    return application, result


def _reported(application: Application, result: JobResult) -> JobResult:
    """A run whose report could not be kept is not green, even when its tables are."""
    result = _with_accepted_source(application, result)
    try:
        write_reports(application.lake, result, airflow=application.request.airflow)
    except LakehouseError as exc:
        error = as_table_error(exc)
        logger.error("report not written", extra={"sentence": error.sentence})  # noqa: TRY400
        return replace(result, error=result.error or error)
    return result


def _with_accepted_source(application: Application, result: JobResult) -> JobResult:
    """Return the result, each table of which says that the pipeline accepts unproven connectors, if so."""
    if not application.pipeline.unproven_source:
        return result
    accepted = "accepted by the pipeline"
    tables = (replace(each, unproven_source=each.unproven_source or accepted) for each in result.tables)
    return replace(result, tables=tuple(tables))


def _hand_over(result: JobResult) -> None:
    target = os.environ.get(ENV_RESULT)
    if target:
        Path(target).write_text(result.to_json(), encoding="utf-8")
    idle = [
        table.table
        for table in result.tables
        if table.status is TableStatus.IDLE and table.error is None and not table.counts
    ]
    if idle:
        logger.info("tables idle", extra={"count": len(idle), "tables": idle})
    for table in result.tables:
        if table.table in idle:
            continue
        facts = {"table": table.table, "status": table.status, "counts": table.counts, **_effort(table)}
        if table.error is None:
            logger.info("table done", extra=facts)
        else:
            logger.error(
                "table failed",
                extra={
                    **facts,
                    "code": table.error.code,
                    "sentence": table.error.sentence,
                    "advice": table.error.advice,
                },
            )


def _effort(table: TableResult) -> dict[str, object]:
    """What the one who tunes looks for; absent where a job has no such thing."""
    facts = {
        "batches": table.batches,
        "drain": table.drain,
        "lag_offsets": table.lag_offsets,
        "seconds": table.seconds,
        "decode_seconds": table.decode_seconds,
        "decoded_per_second": table.decoded_per_second,
        "registry": table.registry,
        "verdict": table.verification.get("verdict"),
        "left_out": table.verification.get("left_out"),
    }
    return {name: value for name, value in facts.items() if value}

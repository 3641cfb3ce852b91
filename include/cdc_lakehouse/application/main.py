"""Run a job as a process: arguments in; log lines, reports, result file and exit code out."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from cdc_lakehouse import log
from cdc_lakehouse.application.application import Application, attempt_now
from cdc_lakehouse.application.command import parse
from cdc_lakehouse.application.failures import as_table_error
from cdc_lakehouse.contract import ENV_RESULT, Job, JobRequest, JobResult, TableResult
from cdc_lakehouse.errors import LakehouseError
from cdc_lakehouse.lake.reports import write_reports

logger = logging.getLogger(__name__)

Work = Callable[[Application], list[TableResult]]


def run(job: Job, work: Work) -> int:
    """Exit code for `sys.exit`. Nothing is raised: whatever happens has a code and a last line."""
    log.configure()
    request = parse(sys.argv[1:], job=job)
    attempt = attempt_now()
    with log.bound(pipeline=request.pipeline, attempt=attempt):
        result = _result(request, work, attempt=attempt)
        _hand_over(result)
        logger.info("job finished", extra={"exit_code": int(result.exit_code), "headline": result.headline()})
    return int(result.exit_code)


def _result(request: JobRequest, work: Work, *, attempt: str) -> JobResult:
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
            application.spark.stop()
    result = JobResult(
        job=request.job,
        pipeline=request.pipeline,
        attempt=attempt,
        tables=tuple(tables),
        error=error,
        seconds={**seconds, "all": round(time.monotonic() - started, 3)},
    )
    return result if application is None else _reported(application, result)


def _reported(application: Application, result: JobResult) -> JobResult:
    """A run whose report could not be kept is not green, even when its tables are."""
    try:
        write_reports(application.lake, result, airflow=application.request.airflow)
    except LakehouseError as exc:
        error = as_table_error(exc)
        logger.error("report not written", extra={"sentence": error.sentence})  # noqa: TRY400
        return JobResult(
            job=result.job,
            pipeline=result.pipeline,
            attempt=result.attempt,
            tables=result.tables,
            error=result.error or error,
            seconds=result.seconds,
        )
    return result


def _hand_over(result: JobResult) -> None:
    target = os.environ.get(ENV_RESULT)
    if target:
        Path(target).write_text(result.to_json(), encoding="utf-8")
    for table in result.tables:
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
        "seconds": table.seconds,
        "decode_seconds": table.decode_seconds,
        "decoded_per_second": table.decoded_per_second,
        "registry": table.registry,
    }
    return {name: value for name, value in facts.items() if value}

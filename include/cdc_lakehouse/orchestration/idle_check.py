"""Is there anything to do at all? A child process without a JVM finds out before spark-submit starts.

It is the job itself as far as it goes without Spark: the same arguments, connections, decisions, result
and reports, and nothing remembered from run to run that could be out of date. It ends with an exit code of
the job only where the job could do nothing: every table is idle, or misses what nobody has any more. Whatever
else it says, or fails to say, is left to the job.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence

from cdc_lakehouse.contract import ExitCode, Job, JobRequest
from cdc_lakehouse.orchestration.process import ChildProcess

LOOKS = {Job.BRONZE_INGEST: "cdc_lakehouse.bronze", Job.SILVER_MERGE: "cdc_lakehouse.silver"}
"""The module that looks for a job; the other jobs have none."""
SECONDS = 60.0
"""A look that takes longer is ended: it saves nothing any more."""


def look_command(request: JobRequest) -> list[str] | None:
    """None where the job must go the whole way: it is asked for more than to do what there is to do."""
    asked = (request.dry_run, *decisions_of(request))
    module = LOOKS.get(request.job)
    if module is None or any(asked):
        return None
    return [sys.executable, "-m", module, *request.to_arguments()]


def decisions_of(request: JobRequest) -> tuple[object, ...]:
    """What a person decided with this run; each is empty where nobody did."""
    return (
        request.accept_gap,
        request.source_epoch,
        request.acknowledge_foreign,
        request.stop_reading,
        request.accept_deletes,
        request.fill_gaps,
    )


def look_before(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    started: Callable[[ChildProcess], None],
    log_line: Callable[[str], None],
) -> ExitCode | None:
    """Return the exit code of a look that leaves the job nothing. Never raises for a look that failed."""
    try:
        child = ChildProcess(command, environment=environment)
    except OSError as error:
        log_line(f"no look before the job: {error}")
        return None
    with child:
        started(child)
        ending = threading.Timer(SECONDS, child.kill)
        ending.daemon = True
        ending.start()
        try:
            for line in child.lines():
                log_line(line)
            code = child.wait()
            return ExitCode(code) if code in (ExitCode.DONE, ExitCode.DATA) else None
        finally:
            ending.cancel()

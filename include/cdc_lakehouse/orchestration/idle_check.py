"""Is there anything to do at all? A child process without a JVM finds out before spark-submit starts.

It is the job itself as far as it goes without Spark: the same arguments, connections, decisions, result
and reports, and nothing remembered from run to run that could be out of date. Only its "every table is
idle" is taken; whatever else it says, or fails to say, is left to the job.
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


def found_idle(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    started: Callable[[ChildProcess], None],
    log_line: Callable[[str], None],
) -> bool:
    """Whether the look ended by itself and says so. Never raises for what became of the look."""
    try:
        child = ChildProcess(command, environment=environment)
    except OSError as error:
        log_line(f"no look before the job: {error}")
        return False
    with child:
        started(child)
        ending = threading.Timer(SECONDS, child.kill)
        ending.daemon = True
        ending.start()
        try:
            for line in child.lines():
                log_line(line)
            return child.wait() == ExitCode.DONE
        finally:
            ending.cancel()

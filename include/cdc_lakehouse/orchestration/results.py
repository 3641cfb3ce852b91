"""What the end of a Spark application means: exit code and result file in, a verdict out."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NotRequired, TypedDict, assert_never

from cdc_lakehouse.contract import (
    ExitCode,
    Job,
    JobResult,
    TableError,
    TableResult,
    TableStatus,
    combined_exit_code,
)
from cdc_lakehouse.log import wrapped
from cdc_lakehouse.orchestration.advances import Advance, advances_of
from cdc_lakehouse.orchestration.report_text import report_text


class Decision(Enum):
    """What Airflow does with the task (`architecture` §7)."""

    SUCCEED = "succeed"
    RETRY = "retry"
    FAIL = "fail now"


class Summary(TypedDict):
    """A task's XCom: small, plain JSON, without payload."""

    job: str
    pipeline: str
    attempt: str | None
    headline: str
    tables: dict[str, str]
    """Table -> its status or what was found of it, or the code of its error."""
    failed: dict[str, str]
    """Table -> the code of its error, without tables in `left`."""
    left: list[str]
    """Tables that a later task of the run tries again."""
    counts: dict[str, int]
    """Over all tables."""
    advanced: dict[str, Advance]
    plans: NotRequired[dict[str, str]]
    """Of a repair: table -> digest of its plan, where the plan would change something."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do, what to tell the person on call, what to hand to the tasks below."""

    decision: Decision
    message: str
    """The first line is the headline, then one line per table that failed."""
    log_line: str
    """What happened to every table: `orders advanced appended=12; idle: customers`."""
    summary: Summary
    report: str = ""
    """Markdown; without a result the message is all there is to say."""


def decision_for(exit_code: int) -> Decision:
    """Signals and codes that are not ours mean that the application was cut off: try again."""
    try:
        known = ExitCode(exit_code)
    except ValueError:
        return Decision.RETRY
    match known:
        case ExitCode.DONE:
            return Decision.SUCCEED
        case ExitCode.DATA | ExitCode.CONFIG:
            return Decision.FAIL
        case ExitCode.RETRY | ExitCode.BUG:
            return Decision.RETRY
    assert_never(known)


def judge(
    job: Job,
    *,
    pipeline: str,
    tables: Sequence[str],
    exit_code: int,
    text: str | None,
    leaves_rest: bool = False,
) -> Verdict:
    """`text` is the result file's, if there is one. Never SUCCEED without a result for every table.

    With `leaves_rest` tables that may succeed at another try are left to a later task of the run, so that
    those below need not wait for it; unless all failed, and nothing waits.
    """
    result, problem = _parsed(text)
    if result is None:
        headline = f"{job} {_described(exit_code)} and {problem}"
        return _without_result(job, pipeline=pipeline, headline=headline, exit_code=exit_code)
    silent = sorted(set(tables) - {table.table for table in result.tables})
    headline, decision = result.headline(), decision_for(exit_code)
    if exit_code == ExitCode.DONE and result.exit_code is not ExitCode.DONE:
        decision = decision_for(result.exit_code)
    elif exit_code == ExitCode.DONE and silent:
        headline, decision = f"{job} said nothing about {', '.join(silent)}", Decision.RETRY
    elif result.exit_code is ExitCode.DONE and exit_code != ExitCode.DONE:
        headline = f"{headline}, but then {job} {_described(exit_code)}"
    left = (
        _left(result) if leaves_rest and decision is Decision.RETRY and exit_code == result.exit_code else []
    )
    if left:
        headline = f"{headline}; tried again without holding the others: {', '.join(left)}"
        for_good = [table.exit_code for table in result.failed if table.table not in left]
        decision = decision_for(combined_exit_code(for_good))
    lines = [headline, *_error_lines(result)]
    return Verdict(
        decision,
        message="\n".join(lines),
        log_line=_log_line(result),
        summary=_summary(result, headline=headline, left=left),
        report=report_text(result, headline=headline),
    )


def refused(job: Job, *, pipeline: str, error: TableError) -> Verdict:
    """The verdict on a job that could not be started: the error stands for all its tables."""
    headline = f"{job} was not started: {error.code}"
    message = f"{headline}\n{_error_line(job, error)}"
    summary = _empty_summary(job, pipeline=pipeline, headline=headline)
    return Verdict(decision_for(error.exit_code), message=message, log_line=headline, summary=summary)


def nothing_left(pipeline: str, job: Job = Job.BRONZE_INGEST) -> Summary:
    """Return the summary of a task that had no table to work on."""
    return _empty_summary(job, pipeline=pipeline, headline="no table was left")


def _left(result: JobResult) -> list[str]:
    """Return tables that may succeed at another try, unless every table failed."""
    if result.error is not None or len(result.failed) == len(result.tables):
        return []
    return [table.table for table in result.failed if decision_for(table.exit_code) is Decision.RETRY]


def _parsed(text: str | None) -> tuple[JobResult | None, str]:
    if not text:
        return None, "left no result"
    try:
        return JobResult.from_json(text), ""
    except (ValueError, KeyError, TypeError) as error:
        return None, f"its result cannot be read ({type(error).__name__}: {error})"


def _without_result(job: Job, *, pipeline: str, headline: str, exit_code: int) -> Verdict:
    decision = Decision.RETRY if exit_code == ExitCode.DONE else decision_for(exit_code)
    advice = (
        "Every commit is whole or absent: the next try continues where the tables stand. The log says why."
    )
    summary = _empty_summary(job, pipeline=pipeline, headline=headline)
    return Verdict(decision, message=f"{headline}\n{advice}", log_line=headline, summary=summary)


def _empty_summary(job: Job, *, pipeline: str, headline: str) -> Summary:
    return Summary(
        job=job,
        pipeline=pipeline,
        attempt=None,
        headline=headline,
        tables={},
        failed={},
        left=[],
        counts={},
        advanced={},
    )


def _summary(result: JobResult, *, headline: str, left: Sequence[str] = ()) -> Summary:
    failed = {table.table: table.error.code for table in result.tables if table.error is not None}
    summary = Summary(
        job=result.job,
        pipeline=result.pipeline,
        attempt=result.attempt,
        headline=headline,
        tables={table.table: failed.get(table.table, table.word) for table in result.tables},
        failed={table: code for table, code in failed.items() if table not in left},
        left=list(left),
        counts=_added_counts(result),
        advanced=advances_of(result),
    )
    plans = {t.table: t.plan["digest"] for t in result.tables if t.plan and t.status is TableStatus.PLANNED}
    if plans:
        summary["plans"] = plans
    return summary


def _added_counts(result: JobResult) -> dict[str, int]:
    total: dict[str, int] = {}
    for table in result.tables:
        for name, count in table.counts.items():
            total[name] = total.get(name, 0) + count
    return total


def _error_lines(result: JobResult) -> list[str]:
    own = [_error_line(result.job, result.error)] if result.error is not None else []
    return [*own, *(_error_line(t.table, t.error) for t in result.tables if t.error is not None)]


def _error_line(who: str, error: TableError) -> str:
    sentence = error.sentence if error.sentence.endswith((".", "!", "?")) else f"{error.sentence}."
    return wrapped(f"{who}: {sentence} {error.advice}".rstrip())


def _log_line(result: JobResult) -> str:
    idle = [t.table for t in result.tables if t.status is TableStatus.IDLE and t.error is None]
    idle = [name for name in idle if not any(t.counts for t in result.tables if t.table == name)]
    words = [_table_words(table) for table in result.tables if table.table not in idle]
    idle_words = [f"idle: {', '.join(idle)}"] if idle else []
    return "; ".join([*words, *idle_words, *result.stopped_connectors])


def _table_words(table: TableResult) -> str:
    if table.error is not None:
        return f"{table.table} {table.error.code}"
    words = [table.table, table.word, *_nonzero(table.counts)]
    words += [] if table.unproven_source is None else [f"unproven_source={table.unproven_source!r}"]
    # A run that is green without its registry is one schema away from red.
    return " ".join([*words, "registry=archive"] if table.registry.get("source") == "archive" else words)


def _nonzero(counts: Mapping[str, int]) -> list[str]:
    return [f"{name}={count}" for name, count in counts.items() if count]


def _described(exit_code: int) -> str:
    """`was killed by SIGKILL`, for both ways in which a shell and Python say so."""
    number = -exit_code if exit_code < 0 else exit_code - 128
    if number in set(signal.Signals):
        return f"was killed by {signal.Signals(number).name}"
    if exit_code == ExitCode.DONE:
        return "ended without an error"
    return f"ended with exit code {exit_code}"

"""The report of a task as Markdown, for a person who has Airflow only: what to press, then all tables."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from cdc_lakehouse.contract import JobResult, TableError, TableResult, TableStatus
from cdc_lakehouse.redaction import one_line

REPORT_KEY = "report"
"""The XCom that holds it."""
LOG_GROUP = "Report"
"""The name of the group of the log that shows it."""
_COLUMNS = ("table", "outcome", "what was done", "offsets", "seconds")


class XComs(Protocol):
    """The part of a task instance that takes values for other tasks and for people."""

    def xcom_push(self, *, key: str, value: Any) -> None: ...


def publish_report(report: str, *, xcoms: XComs, log: logging.Logger | Any) -> None:
    """Show the report in the log, as a group that opens with a click, and keep it as it is for others.

    Airflow's page of XComs runs the lines of a text together.
    """
    xcoms.xcom_push(key=REPORT_KEY, value=report)
    lines = [line for line in report.splitlines() if line.strip()]
    for line in (f"::group::{LOG_GROUP}", *lines, "::endgroup::"):
        log.info("%s", line)


def report_text(result: JobResult, *, headline: str) -> str:
    """Return the report of a job: its errors with their advice, then a row for each table."""
    own = [] if result.error is None else [_error_text(str(result.job), result.error)]
    errors = [_error_text(table.table, table.error) for table in result.tables if table.error is not None]
    notes = [
        f"- {_cell(name.replace('_', ' '))}: {_cell(', '.join(map(str, values)))}"
        for name, values in result.notes.items()
        if values
    ]
    lines = [*_maintenance_lines(result.tables), *notes]
    return "\n\n".join(
        [
            f"## {one_line(headline)}",
            *own,
            *errors,
            *(_plan_text(table) for table in result.tables if table.plan),
            _table_text(result.tables),
            *(["\n".join(lines)] if lines else []),
        ]
    )


def with_tries(report: str, *, try_number: int, earlier: Collection[str], now: Collection[str]) -> str:
    """Return the report of a later try with what is its own: nothing, the rest or all.

    `earlier` and `now` are the tables that advanced in tries before it, and in this one.
    """
    if try_number < 2:
        return report
    done_now, done_before = (", ".join(_cell(name) for name in sorted(tables)) for tables in (now, earlier))
    if not now:
        text = f"nothing; earlier tries moved {done_before}" if earlier else "nothing, and no earlier one did"
    elif earlier:
        text = f"the rest: {done_now}; earlier tries moved {done_before}"
    else:
        text = f"everything: {done_now}"
    return f"{report}\n\nTry {try_number} did {text}."


def run_report_text(
    states: Mapping[str, str],
    headlines: Mapping[str, str],
    reports: Mapping[str, str],
    *,
    failed: Sequence[str],
) -> str:
    """Return the report of a run: a line for each task, then the reports of those that are not a success."""
    lines = [
        f"- `{task}` {state}: {one_line(headlines.get(task) or 'see its log')}"
        for task, state in states.items()
    ]
    title = f"# {len(failed)} of {len(states)} tasks are not a success" if failed else "# All tasks succeeded"
    return "\n\n".join([title, "\n".join(lines), *(reports[task] for task in failed if task in reports)])


def _maintenance_lines(tables: Sequence[TableResult]) -> list[str]:
    """Return what a dry run would do, and for how long OPTIMIZE gave way; the report in the lake has all."""
    return [
        f"- {_cell(name)}: {_cell(', '.join(f'{key} {value}' for key, value in facts.items() if value))}"
        for table in tables
        for name, facts in table.maintenance.items()
        if table.status is TableStatus.PLANNED or facts.get("conflict_nights")
    ]


def _error_text(who: str, error: TableError) -> str:
    return f"**{_cell(who)}** `{error.code}`: {_cell(error.sentence)}\n\n> {_cell(error.advice)}"


def _plan_text(table: TableResult) -> str:
    """Return the plan of a repair: its sentences, then what it would change."""
    plan = table.plan
    effects = [f"- {name.replace('_', ' ')}: {count}" for name, count in plan["effects"].items()]
    details = [f"- {_cell(detail)}" for detail in plan["details"]]
    title = f"### {_cell(table.table)}, plan `{plan['digest']}`\n\n{_cell(plan['summary'])}"
    return "\n\n".join(filter(None, [title, "\n".join(effects), "\n".join(details)]))


def _table_text(tables: Sequence[TableResult]) -> str:
    header = [f"| {' | '.join(_COLUMNS)} |", f"|{'---|' * len(_COLUMNS)}"]
    return "\n".join([*header, *(_row(table) for table in tables)])


def _row(table: TableResult) -> str:
    done = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in table.counts.items() if count)
    seconds = sum(table.seconds.values())
    outcome = table.word if table.error is None else table.error.code
    cells = (table.table, outcome, done, _offsets(table.ranges), f"{seconds:.1f}" if seconds else "")
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _offsets(ranges: Mapping[str, Mapping[str, Any]]) -> str:
    """Return how many offsets were passed; the report in the lake has the ranges."""
    total = sum(until - start for partitions in ranges.values() for start, until in partitions.values())
    return str(total) if total else ""


def _cell(text: str) -> str:
    """Return a text that cannot break out of its cell, whatever a table or a topic is called."""
    escaped = one_line(text)
    for character in "\\|<>[]*`":
        escaped = escaped.replace(character, f"\\{character}")
    return escaped

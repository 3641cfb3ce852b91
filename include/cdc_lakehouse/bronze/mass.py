"""Whether undecodable records are so many that something is wrong in mass: a decision on values, no I/O."""

from __future__ import annotations

from cdc_lakehouse.avro.faults import ValueFault
from cdc_lakehouse.bronze.added import Added
from cdc_lakehouse.config.models import QuarantineLimit
from cdc_lakehouse.errors import QuarantineLimitError

LEAST = 100
"""Fewer say nothing as a share: a topic of three records may well have a bad one."""
RunCounts = tuple[int, int]
"""Undecodable records, and all records, of runs that are judged together (`Ledger.undecodable`)."""


def refuse_in_mass(
    run: Added, limit: QuarantineLimit, *, table: str, before: RunCounts = (0, 0), ends: bool = True
) -> None:
    """`run` is what was committed in this run and the batch that is about to be. Raises before its commit.

    The share counts over the runs `before` too, or a bad producer could send ninety-nine records to each. A
    run that `ends` with this batch and has nothing but undecodable records is refused however few they are,
    unless the share is 1. A value that fits no column of the table does not count: its column has changed,
    so all records behind it may be such, and silver stops at the first. Bronze has to take them before
    retention does.
    """
    by_fault = _count_by_code(run)
    bad = sum(by_fault.values())
    if bad == 0:
        return
    all_bad, all_rows = before[0] + bad, before[1] + run.rows
    in_this_run = bad > limit.records or (bad >= LEAST and bad > limit.share * run.rows)
    nothing_else = ends and limit.share < 1 and sum(run.errors_by_code.values()) == run.rows
    over_runs = all_bad >= LEAST and all_bad > limit.share * all_rows
    if not (in_this_run or nothing_else or over_runs):
        return
    alone = in_this_run or nothing_else
    by_code = ", ".join(f"{code} {count}" for code, count in sorted(by_fault.items()))
    first = next(
        f"{row.topic}/{row.partition}@{row.offset}" for code in by_fault for row in run.bad_rows.get(code, ())
    )
    raise QuarantineLimitError(
        table=table,
        bad=bad if alone else all_bad,
        rows=run.rows if alone else all_rows,
        when="in this run" if alone else f"in this run and the ones before it, {bad} of them in this run,",
        by_code=by_code,
        first=first,
    )


def share_after(run: Added, limit: QuarantineLimit, *, before: RunCounts) -> RunCounts:
    """Return the counts that the next run begins with.

    They begin again at 0 once enough records keep the share: as many as `LEAST` is that share of.
    """
    bad, rows = before[0] + sum(_count_by_code(run).values()), before[1] + run.rows
    kept = bad <= limit.share * rows and rows >= LEAST / limit.share
    return (0, 0) if kept else (bad, rows)


def _count_by_code(run: Added) -> dict[str, int]:
    """Return the undecodable records that count for the limit."""
    return {code: n for code, n in run.errors_by_code.items() if code != ValueFault.INCOMPATIBLE_SCHEMA}

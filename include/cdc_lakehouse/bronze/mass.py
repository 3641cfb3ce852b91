"""Whether undecodable records are so many that something is wrong in mass: a decision on values, no I/O."""

from __future__ import annotations

from cdc_lakehouse.bronze.added import Added
from cdc_lakehouse.config.models import QuarantineLimit
from cdc_lakehouse.errors import QuarantineLimitError

LEAST = 100
"""Fewer say nothing as a share: a topic of three records may well have a bad one."""


def refuse_in_mass(run: Added, limit: QuarantineLimit, *, table: str) -> None:
    """`run` is what was committed in this run and the batch that is about to be. Raises before its commit."""
    bad = sum(run.errors_by_code.values())
    if bad <= limit.records and (bad < LEAST or bad <= limit.share * run.rows):
        return
    by_code = ", ".join(f"{code} {count}" for code, count in sorted(run.errors_by_code.items()))
    first = next(
        f"{row.topic}/{row.partition}@{row.offset}" for rows in run.bad_rows.values() for row in rows
    )
    raise QuarantineLimitError(table=table, bad=bad, rows=run.rows, by_code=by_code, first=first)

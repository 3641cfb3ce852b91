"""Whether undecodable records are so many that something is wrong in mass: a decision on values, no I/O."""

from __future__ import annotations

from cdc_lakehouse.avro.faults import ValueFault
from cdc_lakehouse.bronze.added import Added
from cdc_lakehouse.config.models import QuarantineLimit
from cdc_lakehouse.errors import QuarantineLimitError

LEAST = 100
"""Fewer say nothing as a share: a topic of three records may well have a bad one."""


def refuse_in_mass(run: Added, limit: QuarantineLimit, *, table: str) -> None:
    """`run` is what was committed in this run and the batch that is about to be. Raises before its commit.

    A value that fits no column of the table does not count: its column has changed, so all records behind it
    may be such, and silver stops at the first. Bronze has to take them before retention does.
    """
    counted = {code: n for code, n in run.errors_by_code.items() if code != ValueFault.INCOMPATIBLE_SCHEMA}
    bad = sum(counted.values())
    if bad <= limit.records and (bad < LEAST or bad <= limit.share * run.rows):
        return
    by_code = ", ".join(f"{code} {count}" for code, count in sorted(counted.items()))
    first = next(
        f"{row.topic}/{row.partition}@{row.offset}" for code in counted for row in run.bad_rows.get(code, ())
    )
    raise QuarantineLimitError(table=table, bad=bad, rows=run.rows, by_code=by_code, first=first)

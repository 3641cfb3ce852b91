"""How far tables came, as JSON that fits into an XCom and into the extra of an asset event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from cdc_lakehouse.contract import Job, JobResult, TableResult

LAYER = {Job.BRONZE_INGEST: "bronze", Job.SILVER_MERGE: "silver"}
"""The layer whose tables a job moves; other jobs move none."""


class Advance(TypedDict):
    """One table's way within one task of one DAG run, all tries together."""

    rows: int
    """Rows that readers find added, changed or deleted, as the job counted them."""
    ranges: dict[str, dict[str, list[int]]]
    """Topic -> partition -> [from, until)."""
    seen_through: str | None
    valid_through: str | None
    """Everything that the source had committed by then is in the table; None where nobody can say so."""
    valid_position: str | None
    """The same as a place in the source's log."""
    versions: dict[str, int]
    attempts: list[str]


def advances_of(result: JobResult) -> dict[str, Advance]:
    """The tables that readers can see more of than before."""
    return {table.table: _advance(table, result) for table in result.advanced}


def joined(earlier: Mapping[str, Advance], later: Mapping[str, Advance]) -> dict[str, Advance]:
    """Both together. A second join with the same attempt changes nothing."""
    tables = dict(earlier)
    for name, advance in later.items():
        tables[name] = _joined_advance(tables[name], advance) if name in tables else advance
    return tables


def _advance(table: TableResult, result: JobResult) -> Advance:
    return Advance(
        rows=table.rows,
        ranges={
            topic: {partition: [start, end] for partition, (start, end) in partitions.items()}
            for topic, partitions in table.ranges.items()
        },
        seen_through=table.seen_through,
        valid_through=table.valid_through,
        valid_position=table.valid_position,
        versions=dict(table.versions),
        attempts=[result.attempt],
    )


def _joined_advance(earlier: Advance, later: Advance) -> Advance:
    if set(later["attempts"]) <= set(earlier["attempts"]):
        return earlier
    return Advance(
        rows=earlier["rows"] + later["rows"],
        ranges=_joined_ranges(earlier["ranges"], later["ranges"]),
        seen_through=later["seen_through"] or earlier["seen_through"],
        valid_through=later["valid_through"],
        valid_position=later["valid_position"],
        versions={**earlier["versions"], **later["versions"]},
        attempts=[*earlier["attempts"], *later["attempts"]],
    )


def _joined_ranges(*both: Mapping[str, Mapping[str, list[int]]]) -> dict[str, dict[str, list[int]]]:
    """From the lowest to the highest offset: what lies between two drains of a table was drained too."""
    found: dict[str, dict[str, list[int]]] = {}
    for ranges in both:
        for topic, partitions in ranges.items():
            for partition, (start, end) in partitions.items():
                low, high = found.setdefault(topic, {}).get(partition, [start, end])
                found[topic][partition] = [min(low, start), max(high, end)]
    return found


def as_json(advances: Mapping[str, Advance]) -> dict[str, Any]:
    """The same, for interfaces that take nothing but plain JSON."""
    return {name: dict(advance) for name, advance in advances.items()}

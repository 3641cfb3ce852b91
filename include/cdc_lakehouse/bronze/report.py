"""What an ingest did to one table, as its report tells it: from its commits, no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from cdc_lakehouse.bronze.added import Added
from cdc_lakehouse.bronze.epochs import all_opened
from cdc_lakehouse.bronze.plan import DrainPlan
from cdc_lakehouse.bronze.write import CommitResult
from cdc_lakehouse.contract import TableResult, TableStatus
from cdc_lakehouse.lake.ledger import Ledger, gaps_by_topic, topic_of
from cdc_lakehouse.lake.spans import Spans


def told(
    commits: Sequence[CommitResult],
    *,
    plan: DrainPlan,
    ledger: Ledger,
    amended: int | None,
    filled: Spans,
    drain: Mapping[str, Any],
    registry: Mapping[str, Any],
    seconds: Mapping[str, float],
) -> TableResult:
    """`ledger` is the newest; `amended` the version in which it was said what was decided, if anything."""
    added = Added.together(commit.added for commit in commits)
    version = commits[-1].version if commits else amended
    seen, decode_seconds = added.seen_through, added.decode_seconds
    return TableResult(
        table=plan.table,
        status=TableStatus.IDLE if version is None else TableStatus.ADVANCED,
        ranges=_ranges(commits),
        rows=added.rows,
        counts={
            "appended": added.rows,
            "undecodable": sum(added.errors_by_code.values()),
            "out_of_range": added.out_of_range,
        },
        errors_by_code=added.errors_by_code,
        seen_through=None if seen is None else seen.isoformat(),
        lag_seconds=None if seen is None else round((datetime.now(UTC) - seen).total_seconds(), 1),
        seconds={name: round(value, 3) for name, value in seconds.items()},
        versions={} if version is None else {"bronze": version},
        batches=len(commits),
        drain=drain,
        schema_ids=added.schema_ids(),
        registry=registry,
        decode_seconds=round(decode_seconds, 3),
        decoded_per_second=round(added.rows / decode_seconds) if decode_seconds else None,
        bad_rows=added.bad_rows_by_code(),
        decisions={
            **(plan.ledger.decisions if amended is not None else {}),
            **plan.fill.decision(filled, left=ledger.gaps()),
            **all_opened(commit.ledger for commit in commits),
        },
        gaps=gaps_by_topic(ledger),
    )


def _ranges(commits: Sequence[CommitResult]) -> dict[str, dict[str, tuple[int, int]]]:
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for commit in commits:
        for source, partitions in commit.ledger.added.items():
            known = found.setdefault(topic_of(source), {})
            for partition, (start, end) in partitions.items():
                known[str(partition)] = (known.get(str(partition), (start, end))[0], end)
    return found

"""What a merge has to do: decisions on values, no Spark, no I/O."""

from __future__ import annotations

from dataclasses import replace

from cdc_lakehouse.errors import BronzeBehindError
from cdc_lakehouse.lake.applied import Applied
from cdc_lakehouse.lake.ledger import Kind, Ledger, Ranges
from cdc_lakehouse.lake.progress import Progress, Span, shared, subtracted
from cdc_lakehouse.lake.redo import Redo
from cdc_lakehouse.lake.spans import Spans, coarse, each_span, offsets_in, together, without
from cdc_lakehouse.silver.folding.clearing import waits_for_the_rest

MOST_PARTS = 1_000
"""Of `passed_over` in a ledger: every attempt reads it."""
SMALL_OFFSETS = 20_000
_SMALL_BYTES = 32 * 1024 * 1024


def plan_work(bronze: Ledger, silver: Ledger) -> Ranges:
    """The coordinates that bronze holds and silver has not applied; empty when silver is level."""
    work: dict[str, dict[int, Span]] = {}
    for source, partitions in bronze.sources.items():
        for partition, progress in partitions.items():
            applied = silver.end(source, partition)
            if applied is not None and applied > progress.end:
                raise BronzeBehindError(
                    table=silver.table,
                    source=source,
                    partition=partition,
                    applied=applied,
                    end=progress.end,
                )
            start = progress.floor if applied is None else applied
            # Across gaps, which hold no rows; where nothing but a gap is new there is nothing to do yet.
            if any(until > start for _, until in progress.present()):
                work.setdefault(source, {})[partition] = (start, progress.end)
    return work


def plan_redo(bronze: Ledger, silver: Ledger) -> tuple[Redo, ...]:
    """Rows that bronze decoded again since silver passed them."""
    return tuple(redo for redo in bronze.redo if redo.seq > silver.redone)


def plan_late(bronze: Ledger, silver: Ledger) -> Spans:
    """What was missing when silver passed it, and is in bronze now: gaps that were filled, or restored."""
    return _held(silver.gaps(), bronze)


def knows_all_of(silver: Ledger, bronze: Ledger) -> bool:
    """Whether no row that silver could not take can have changed: it has read this very step."""
    step = None if silver.stands_on is None else (silver.redone, silver.stands_on[1])
    return not silver.passed_over or step == (bronze.seq, bronze.attempt)


def stands_on_other_rows(silver: Ledger, bronze: Ledger, *, found: Ledger | None) -> bool:
    """Whether bronze was deleted, brought back from a copy or restored, and read again, since silver read it;
    or silver was brought back from a copy, and bronze has forgotten what it decoded again since.

    `found` is what bronze's log says at the version that silver stands on. Only records that could not be
    decoded then can have other contents now.

    A version that the log has forgotten counts as replaced: to compute keys anew changes nothing then.
    """
    if silver.stands_on is None or not silver.passed_over:
        return False
    is_there = found is not None and found.attempt == silver.stands_on[1]
    return not is_there or bronze.untold > silver.redone


def plan_read_again(bronze: Ledger, silver: Ledger) -> Spans:
    """What silver could not take from the rows that bronze had before, and bronze holds again."""
    return _held(silver.passed_over, bronze)


def plan_all_again(bronze: Ledger, silver: Ledger) -> Spans:
    """All that silver has applied and bronze holds."""
    applied = {
        source: {partition: progress.present() for partition, progress in partitions.items()}
        for source, partitions in silver.sources.items()
    }
    return _held(applied, bronze)


def _held(spans: Spans, bronze: Ledger) -> Spans:
    found = {
        source: {
            partition: held
            for partition, parts in partitions.items()
            if (progress := bronze.sources.get(source, {}).get(partition)) is not None
            and (held := shared(parts, progress.present()))
        }
        for source, partitions in spans.items()
    }
    return {source: partitions for source, partitions in found.items() if partitions}


def is_level(bronze: Ledger, silver: Ledger, *, holds: bool, other_rows: bool = False) -> bool:
    """Whether a merge has nothing to do. Events that were left out count once the table holds no more."""
    changed = plan_redo(bronze, silver) or plan_late(bronze, silver) or other_rows
    changed = changed or waits_for_the_rest(silver.applied, bronze)
    return not (plan_work(bronze, silver) or changed or (silver.parked and not holds))


def next_ledger(
    before: Ledger,
    bronze: Ledger,
    work: Ranges,
    *,
    attempt: str,
    seen_through: str | None,
    applied: Applied,
    parked: bool = False,
    refolded: bool = False,
) -> Ledger:
    """Silver's ledger behind `work`: what bronze misses of it, silver has not applied either.

    A merge applies what came late too, so that is no gap of silver's any more. Keys that it refolds are made
    of what bronze holds: from then on silver may owe nothing to rows that bronze lost, and says so.
    """
    after = before.advanced(work, attempt=attempt, seen_through=seen_through)
    sources = {source: dict(partitions) for source, partitions in after.sources.items()}
    late = plan_late(bronze, before)
    for source, partition, part in each_span(late):
        sources[source][partition] = sources[source][partition].filled(part)
    if refolded or late or plan_redo(bronze, before) or (before.parked and not parked):
        for source, partition, gap in each_span(bronze.gaps()):
            if partition in sources.get(source, {}):
                sources[source][partition] = sources[source][partition].without([gap])
    for source, partitions in work.items():
        for partition, span in partitions.items():
            held = bronze.sources[source][partition]
            missing = subtracted([span], held.present())
            moved = sources[source][partition].without(missing)
            sources[source][partition] = replace(moved, epochs=held.epochs)
    return replace(
        after,
        sources=sources,
        redone=bronze.seq,
        parked=parked,
        applied=applied,
        counted=bronze.counted,
    )


def standing_on(
    bronze: Ledger, after: Ledger, *, version: int, undecodable: Spans, read_again: Spans
) -> Ledger:
    """Silver's ledger, which remembers what it could not take and of which rows that was true.

    `version` of bronze states `bronze`; `undecodable` are in what was looked at, `read_again` included.
    """
    left = together(without(after.passed_over, read_again), undecodable)
    return replace(after, stands_on=(version, bronze.attempt), passed_over=coarse(left, most=MOST_PARTS))


def rows_committed(bronze: Ledger, silver: Ledger) -> int | None:
    """Return the number of rows that bronze got since silver read it; None where it is not known.

    These are the rows of `plan_work` and `plan_late`.
    """
    if bronze.counted is None:
        return None
    step, rows = bronze.counted
    before = (0, 0) if silver.seq == 0 else silver.counted
    return rows - before[1] if before is not None and before[0] == step else None


def is_small(work: Ranges, *, late: Spans, table_bytes: int) -> bool:
    """Whether reading the work and the table takes less time than compiling code for it."""
    offsets = sum(end - start for partitions in work.values() for start, end in partitions.values())
    return offsets + offsets_in(late) <= SMALL_OFFSETS and table_bytes <= _SMALL_BYTES


def first_ledger(bronze: Ledger) -> Ledger:
    """Silver's ledger before its first merge: it begins where bronze begins."""
    floors = {
        source: {partition: Progress(floor=p.floor, end=p.floor) for partition, p in partitions.items()}
        for source, partitions in bronze.sources.items()
    }
    return Ledger(
        kind=Kind.SILVER,
        pipeline=bronze.pipeline,
        table=bronze.table,
        cluster_id=bronze.cluster_id,
        sources=floors,
        redone=bronze.seq,
    )

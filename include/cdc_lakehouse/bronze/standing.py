"""Where a bronze table stands when its log alone does not say: decisions on values, no I/O.

A document can be lost, and somebody can change rows by hand. Each way back ends in a ledger that says what
the table holds and nothing else, so that the drain behind it neither doubles nor loses a record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cdc_lakehouse.contract import MAX_SOURCE_EPOCH
from cdc_lakehouse.errors import ForeignRowsError
from cdc_lakehouse.lake.commits import RESTORE, ForeignCommit
from cdc_lakehouse.lake.ledger import LARGEST_EPOCH, Ledger, Sources
from cdc_lakehouse.lake.progress import Progress, Span
from cdc_lakehouse.lake.state import TableState

MOST_GAPS = 1_000
"""A ledger is read by every attempt: rows taken out one by one all over a table are no gaps."""

Present = Mapping[str, Mapping[int, Span]]
"""Source -> partition -> [first offset, last offset + 1) of the rows that a table holds."""
Lost = Mapping[str, Mapping[int, tuple[Span, ...]]]
"""Source -> partition -> what it held and does not hold any more."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Rows of a table now, compared with those of our newest version."""

    lost: Lost
    held: Present
    """What there is still."""
    strange: int = 0
    """Rows whose coordinate was not there, or is there twice."""


def recovered(empty: Ledger, held: Present, *, step: int) -> tuple[Ledger, dict[str, Any]]:
    """The ledger of rows whose document is lost: behind the last offset of each partition.

    What was read and left no row (aborted transactions at the end) is read again and leaves none. Gaps and
    epochs of the past are forgotten.
    """
    sources = {
        source: {p: Progress(floor=first, end=end) for p, (first, end) in partitions.items()}
        for source, partitions in held.items()
    }
    ledger = replace(empty, seq=step, sources=sources, untold=step + 1, counted=_restart_count(step))
    return ledger, {"recovered": "from rows"}


def after_restore(state: TableState, ours: Ledger) -> tuple[Ledger, dict[str, Any]]:
    """In place of `ours` the ledger of the version whose data is back: what came behind is read again."""
    back = state.restored.ledger if state.restored is not None else None
    try:
        return went_back(ours, back, step=state.seq), _acknowledged(state.foreign)
    except ValueError as exc:
        problem = f"version {state.foreign[0].restored} holds rows of another source epoch ({exc})"
        raise ForeignRowsError(table=ours.table, ours=state.stated or 0, problem=problem) from exc


def went_back(ours: Ledger, back: Ledger | None, *, step: int) -> Ledger:
    """Return the ledger of a table that has the rows of a version again whose ledger is `back`.

    `ours` is its newest ledger, and `step` its newest step. Without `back` nothing was read then. Raise
    `ValueError` for a version ahead of `ours` whose rows would be of other source epochs by now.
    """
    then: Sources = {} if back is None else back.sources
    sources: dict[str, dict[int, Progress]] = {}
    for source in {**ours.sources, **then}:
        partitions, restored = ours.sources.get(source, {}), then.get(source, {})
        sources[source] = {p: _restored(progress, restored.get(p)) for p, progress in partitions.items()}
        sources[source] |= {p: restored[p] for p in restored.keys() - partitions.keys()}
    return replace(ours, seq=step, sources=sources, untold=step + 1, counted=_restart_count(step))


def after_edit(state: TableState, ours: Ledger, found: Difference) -> tuple[Ledger, dict[str, Any]]:
    """The ledger of what somebody left behind: rows that were taken out are missing from now on.

    A RESTORE means to go back, so there what is gone from the end is read again. Rows that are not ours are
    refused: which of two is right, no ledger can say.
    """
    if found.strange:
        problem = f"{found.strange} row(s) are not ours, or are there twice"
        raise ForeignRowsError(table=ours.table, ours=state.stated or 0, problem=problem)
    goes_back = any(commit.operation == RESTORE for commit in state.foreign)
    sources = {source: dict(partitions) for source, partitions in ours.sources.items()}
    for source, partitions in found.lost.items():
        for partition, spans in partitions.items():
            before = sources[source][partition]
            end = _held_end(found, source, partition, before) if goes_back else before.end
            sources[source][partition] = before.rewound(end, gaps=[*before.gaps, *spans])
    gaps = sum(len(p.gaps) for partitions in sources.values() for p in partitions.values())
    if gaps > MOST_GAPS:
        problem = f"rows are missing in {gaps} places"
        raise ForeignRowsError(table=ours.table, ours=state.stated or 0, problem=problem)
    lost = {s: {str(p): list(spans) for p, spans in ps.items()} for s, ps in found.lost.items()}
    untold = state.seq + 1 if goes_back else ours.untold
    counted = _restart_count(state.seq)
    after = replace(ours, seq=state.seq, sources=sources, untold=untold, counted=counted)
    return after, {**_acknowledged(state.foreign), "lost": lost}


def renumbered(ledger: Ledger, *, applied: int) -> tuple[Ledger, dict[str, Any]]:
    """Return the ledger with too high epochs numbered on behind those in use, and the decision that says so.

    Earlier releases took any number for a source epoch. Above `MAX_SOURCE_EPOCH` a person can open no other,
    and what is no bigint cannot be merged. `applied` is the highest that silver has rows of: it stays, and so
    do all below it. Where no number is left nothing changes, and a second call changes nothing either.
    """
    known = {
        epoch for partitions in ledger.sources.values() for p in partitions.values() for _, epoch in p.epochs
    }
    too_high = sorted(epoch for epoch in known if epoch > max(applied, MAX_SOURCE_EPOCH))
    newest = max([applied, *(known - set(too_high))])
    numbers = {epoch: newest + place for place, epoch in enumerate(too_high, 1)}
    if all(old == new for old, new in numbers.items()) or newest + len(numbers) > LARGEST_EPOCH:
        return ledger, {}
    sources = {
        source: {
            p: replace(
                progress, epochs=tuple((start, numbers.get(epoch, epoch)) for start, epoch in progress.epochs)
            )
            for p, progress in partitions.items()
        }
        for source, partitions in ledger.sources.items()
    }
    told = {str(old): new for old, new in numbers.items()}
    return replace(ledger, sources=sources), {"epochs_renumbered": told}


def highest_applied(silver: Ledger) -> int:
    """Return the highest source epoch that silver has rows of, or has made place for."""
    partitions = (progress for known in silver.sources.values() for progress in known.values())
    held = [p.epoch_at(p.end - 1) for p in partitions if p.end > p.floor]
    top = silver.applied.top
    return max([0, *held, *([] if top is None else [top[0]]), silver.applied.complete or 0])


def _restart_count(step: int) -> tuple[int, int]:
    """Return the count of rows that begins behind `step`, since rows that were changed by hand do not agree
    with the old one. A step of 0 would mean that rows are counted from the first step on.
    """
    return max(step, 1), 0


def _restored(now: Progress, then: Progress | None) -> Progress:
    """Return where the version that is back had read; the first record, where that had not begun yet."""
    return now.rewound(now.floor, gaps=()) if then is None else now.restored(then)


def _held_end(found: Difference, source: str, partition: int, before: Progress) -> int:
    held = found.held.get(source, {}).get(partition)
    return before.floor if held is None else held[1]


def _acknowledged(foreign: tuple[ForeignCommit, ...]) -> dict[str, Any]:
    return {
        "acknowledge_foreign": [
            {"version": commit.version, "operation": commit.operation} for commit in foreign
        ]
    }

"""Runs of streamed events that name the commit before them, or that do not (`cdc-semantics` rule 2.5).

Runs also show whether the log went backwards: within a partition events come in the order of their commits,
unless a block of them is sent again, or the source went back (rule 2.7). The commits that events name
separate the events before a repeated snapshot from those behind it (rule 2.5).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa

from cdc_lakehouse.lake.progress import Spot


@dataclass(frozen=True, slots=True)
class LogRun:
    """Streamed events of one partition that follow each other and are of one kind."""

    topic: str
    partition: int
    first: int
    last: int
    """Offsets, both included."""
    knows_past: bool
    """Whether they name the commit before their own, as all do but the first ones of a new slot."""
    row: int
    """The highest place in the source's log."""
    begins: Spot
    ends: Spot
    """Of the first and of the last event."""
    turned: int | None = None
    """The offset of the last event that stands below the one before it."""
    commits: tuple[int, int] = (0, 0)
    """The lowest and the highest commit that an event names; 0 where it names none."""

    def joined(self, behind: Self) -> Self:
        turned = behind.first if behind.begins < self.ends else self.turned
        return replace(
            self,
            last=behind.last,
            row=max(self.row, behind.row),
            ends=behind.ends,
            turned=turned if behind.turned is None else behind.turned,
            commits=(min(self.commits[0], behind.commits[0]), max(self.commits[1], behind.commits[1])),
        )

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Self:
        pairs = {name: tuple(document[name]) for name in ("begins", "ends", "commits")}
        return cls(**{**document, **pairs})


def log_runs(
    topic: str,
    partition: int,
    offsets: np.ndarray,
    columns: PositionColumns,
    *,
    apart_at: Sequence[int] = (),
) -> Iterator[LogRun]:
    """Yield the runs of streamed events, in the order of their offsets. A row of a full snapshot ends a run.

    A commit of 0 is one that was not named: no log begins there. Other sources than PostgreSQL name theirs
    always or never, so their rows are of one kind. No run has commits on both sides of one of `apart_at`.
    """
    places = np.flatnonzero(columns.is_streamed)
    if len(places):
        kinds = _count_reached_commits(columns.commit[places], apart_at)
        kinds += (len(apart_at) + 2) * np.cumsum(columns.is_snapshot)[places]
        yield from _split_by_kind(topic, partition, offsets, columns, places=places, kinds=kinds)


def chunk_runs(
    topic: str,
    partition: int,
    offsets: np.ndarray,
    columns: PositionColumns,
    *,
    apart_at: Sequence[int] = (),
) -> Iterator[LogRun]:
    """Yield the rows of incremental snapshots as runs, which say where in the log they were read.

    Without `apart_at`, which means the same as for `log_runs`, it is one run.
    """
    places = np.flatnonzero(columns.is_chunk)
    if len(places):
        commits = columns.commit[places]
        kinds = _count_reached_commits(commits, apart_at) if len(apart_at) else np.zeros(len(places), int)
        yield from _split_by_kind(topic, partition, offsets, columns, places=places, kinds=kinds)


def _count_reached_commits(commits: np.ndarray, apart_at: Sequence[int]) -> np.ndarray:
    """Return 0 for each event that names no commit; for others 1 and how many of `apart_at` it reaches."""
    reached = np.searchsorted(np.sort(np.asarray(apart_at, np.int64)), commits, side="right")
    kinds: np.ndarray = np.where(commits == 0, 0, reached + 1)
    return kinds


@dataclass(frozen=True, slots=True)
class PositionColumns:
    """Fields of the positions of bronze rows, as arrays of one length."""

    commit: np.ndarray
    row: np.ndarray
    is_streamed: np.ndarray
    is_chunk: np.ndarray
    """Whether an incremental snapshot has read the row."""
    is_snapshot: np.ndarray
    """Whether a full snapshot has read it."""

    @classmethod
    def of(cls, position: pa.StructArray) -> Self:
        numbers = {name: _numbers(position.field(name)) for name in ("phase", "streamed", "commit", "row")}
        has_position = np.ones(len(position), bool)
        if position.null_count:
            has_position = position.is_valid().to_numpy(zero_copy_only=False)
        in_stream, streamed = has_position & (numbers["phase"] == 1), numbers["streamed"] == 1
        return cls(
            numbers["commit"],
            numbers["row"],
            is_streamed=in_stream & streamed,
            is_chunk=in_stream & ~streamed,
            is_snapshot=has_position & (numbers["phase"] == 0),
        )


def _split_by_kind(
    topic: str,
    partition: int,
    offsets: np.ndarray,
    columns: PositionColumns,
    *,
    places: np.ndarray,
    kinds: np.ndarray,
) -> Iterator[LogRun]:
    """Yield the rows at `places` as runs of one kind each."""
    starts = np.concatenate([[0], np.flatnonzero(kinds[1:] != kinds[:-1]) + 1])
    commits, rows = columns.commit[places], columns.row[places]
    highest = np.maximum.reduceat(rows, starts)
    bounds = zip(np.minimum.reduceat(commits, starts), np.maximum.reduceat(commits, starts), strict=True)
    lasts = np.append(starts[1:], len(places)) - 1
    turned = np.flatnonzero(_below_the_one_before(commits, rows)) + 1
    for start, last, row, (least, most) in zip(starts, lasts, highest, bounds, strict=True):
        own = turned[(turned > start) & (turned <= last)]
        yield LogRun(
            topic,
            partition,
            first=int(offsets[places[start]]),
            last=int(offsets[places[last]]),
            knows_past=bool(commits[start] != 0),
            row=int(row),
            begins=(int(commits[start]), int(rows[start])),
            ends=(int(commits[last]), int(rows[last])),
            turned=int(offsets[places[own[-1]]]) if len(own) else None,
            commits=(int(least), int(most)),
        )


def _below_the_one_before(commits: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Of all but the first. Events of one transaction name the same commit, and their rows ascend."""
    same = commits[1:] == commits[:-1]
    below: np.ndarray = (commits[1:] < commits[:-1]) | (same & (rows[1:] < rows[:-1]))
    return below


def _numbers(column: pa.Array) -> np.ndarray:
    """Rows without a position may have a null or anything else here."""
    found: np.ndarray = (column.fill_null(0) if column.null_count else column).to_numpy()
    return found

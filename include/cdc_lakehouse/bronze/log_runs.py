"""Runs of streamed events that name the commit before them, or that do not (`cdc-semantics` rule 2.5).

They also tell whether the log turned back: within a partition events come in the order of their commits,
unless a block of them is sent again, or the source went back (rule 2.7).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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

    def joined(self, behind: Self) -> Self:
        turned = behind.first if behind.begins < self.ends else self.turned
        return replace(
            self,
            last=behind.last,
            row=max(self.row, behind.row),
            ends=behind.ends,
            turned=turned if behind.turned is None else behind.turned,
        )

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Self:
        return cls(**{**document, "begins": tuple(document["begins"]), "ends": tuple(document["ends"])})


def log_runs(topic: str, partition: int, offsets: np.ndarray, position: pa.StructArray) -> Iterator[LogRun]:
    """Of bronze rows in the order of their offsets, without those of snapshots and those without a position.

    A commit of 0 is one that was not named: no log begins there. Other sources than PostgreSQL name theirs
    always or never, so their rows are of one kind.
    """
    numbers = {name: _numbers(position.field(name)) for name in ("phase", "streamed", "commit", "row")}
    streamed = (numbers["phase"] == 1) & (numbers["streamed"] == 1)
    if position.null_count:
        streamed &= position.is_valid().to_numpy(zero_copy_only=False)
    places = np.flatnonzero(streamed)
    if not len(places):
        return
    known = numbers["commit"][places] != 0
    starts = np.concatenate([[0], np.flatnonzero(known[1:] != known[:-1]) + 1])
    commits, rows = numbers["commit"][places], numbers["row"][places]
    highest = np.maximum.reduceat(rows, starts)
    lasts = np.append(starts[1:], len(places)) - 1
    turned = np.flatnonzero(_below_the_one_before(commits, rows)) + 1
    for start, last, row in zip(starts, lasts, highest, strict=True):
        own = turned[(turned > start) & (turned <= last)]
        yield LogRun(
            topic,
            partition,
            first=int(offsets[places[start]]),
            last=int(offsets[places[last]]),
            knows_past=bool(known[start]),
            row=int(row),
            begins=(int(commits[start]), int(rows[start])),
            ends=(int(commits[last]), int(rows[last])),
            turned=int(offsets[places[own[-1]]]) if len(own) else None,
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

"""Runs of streamed events that name the commit before them, or that do not (`cdc-semantics` rule 2.5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pyarrow as pa


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

    def joined(self, behind: Self) -> Self:
        return replace(self, last=behind.last, row=max(self.row, behind.row))


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
    highest = np.maximum.reduceat(numbers["row"][places], starts)
    lasts = np.append(starts[1:], len(places)) - 1
    for start, last, row in zip(starts, lasts, highest, strict=True):
        yield LogRun(
            topic,
            partition,
            first=int(offsets[places[start]]),
            last=int(offsets[places[last]]),
            knows_past=bool(known[start]),
            row=int(row),
        )


def _numbers(column: pa.Array) -> np.ndarray:
    """Rows without a position may have a null or anything else here."""
    found: np.ndarray = (column.fill_null(0) if column.null_count else column).to_numpy()
    return found

"""Rows counted and summed by chunk, so that only chunks that differ are looked into.

A chunk is a part of the keys' digests: both sides find it without an order that they would have to share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cdc_lakehouse.verification.cells import Digests

_ROWS_OF_A_CHUNK = 500
_FEWEST, _MOST = 64, 1 << 18


def chunk_count(rows: int) -> int:
    """For a table of about so many rows: small chunks, of which a few late keys touch a few."""
    return int(np.clip(rows // _ROWS_OF_A_CHUNK, _FEWEST, _MOST))


def chunks_of(keys: Digests, *, count: int) -> np.ndarray:
    """The chunk of each row."""
    return (keys[:, 0] % np.uint64(count)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums do not know an order, and a row that stands there twice counts twice."""

    counts: np.ndarray
    digests: Digests
    """One line per chunk."""

    @classmethod
    def of_nothing(cls, count: int) -> Sums:
        return cls(np.zeros(count, np.int64), np.zeros((count, 2), np.uint64))

    def add(self, keys: Digests, rows: Digests) -> None:
        """In place: there is one of these per side, and millions of rows."""
        chunks = chunks_of(keys, count=len(self.counts))
        np.add.at(self.counts, chunks, 1)
        np.add.at(self.digests, chunks, rows)

    @property
    def rows(self) -> int:
        return int(self.counts.sum())

    @property
    def checksum(self) -> str:
        high, low = (int(part) for part in self.digests.sum(axis=0, dtype=np.uint64))
        return f"{high:016x}{low:016x}"


@dataclass(frozen=True, slots=True)
class Opened:
    """Which chunks are looked into."""

    chunks: np.ndarray
    """One truth per chunk."""
    different: int
    not_opened: int
    """Chunks that differ as well and are left for another look: too many rows at once."""


def plan_opening(source: Sums, silver: Sums, *, most_rows: int) -> Opened:
    differ = (source.counts != silver.counts) | (source.digests != silver.digests).any(axis=1)
    rows = np.maximum(source.counts, silver.counts)
    chosen = np.flatnonzero(differ)
    fits = np.cumsum(rows[chosen]) <= most_rows
    fits[:1] = True
    opened = np.zeros(len(differ), bool)
    opened[chosen[fits]] = True
    return Opened(opened, different=len(chosen), not_opened=int((~fits).sum()))

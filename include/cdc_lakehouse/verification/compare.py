"""Compare the rows of both sides: sums of all of them first, then rows of the chunks that differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from cdc_lakehouse.verification.cells import digests
from cdc_lakehouse.verification.chunks import Opened, Sums, chunk_count, plan_opening
from cdc_lakehouse.verification.differences import ChunkReader, Difference, Kind, differences
from cdc_lakehouse.verification.sides import RowBatch

MOST_ROWS = 200_000
"""Of the chunks that are looked into at once: what bounds the memory."""

Read: TypeAlias = Callable[[], Iterable[RowBatch]]
"""All rows of a side; again, and the same, with each call."""


@dataclass(frozen=True, slots=True)
class Comparison:
    source: Sums
    silver: Sums
    opened: Opened
    found: tuple[Difference, ...]
    """Of the opened chunks."""
    as_null: dict[str, int]
    """Column -> values of the source that silver stores as NULL by the pipeline's own word."""

    def of_rows_in_silver(self) -> Comparison:
        """Without keys that only the source has: a filter may have left them out."""
        return replace(self, found=tuple(each for each in self.found if each.kind is not Kind.MISSING))


def compare(
    source: Read,
    silver: Read,
    *,
    columns: tuple[str, ...],
    keys: int,
    about: int,
    most_rows: int = MOST_ROWS,
) -> Comparison:
    """`columns` are those of the batches, the first `keys` of them the key; `about` tells how many rows."""
    count = chunk_count(about)
    as_null: Counter[str] = Counter()
    ours, theirs = (_summed(read(), keys=keys, count=count, as_null=as_null) for read in (source, silver))
    opened = plan_opening(ours, theirs, most_rows=most_rows)
    found: list[Difference] = []
    if opened.different:
        reader = ChunkReader(opened, keys=keys)
        found = differences(reader.rows(source()), reader.rows(silver()), columns=columns)
    return Comparison(ours, theirs, opened, tuple(found), dict(as_null))


def _summed(batches: Iterable[RowBatch], *, keys: int, count: int, as_null: Counter[str]) -> Sums:
    sums = Sums.of_nothing(count)
    for batch in batches:
        as_null.update(batch.as_null)
        sums.add(digests(batch.cells[:keys]), digests(batch.cells))
    return sums

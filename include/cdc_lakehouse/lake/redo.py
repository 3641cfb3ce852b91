"""Rows of bronze whose contents changed in place: decoded again where they stand (`architecture` §5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from cdc_lakehouse.lake.progress import Span


@dataclass(frozen=True, slots=True)
class Redo:
    """One step of bronze that added no row and changed some."""

    seq: int
    attempt: str
    """What these rows have as their `attempt`."""
    rows: int
    within: Mapping[str, Mapping[int, Span]]
    """`<topic>@<topic_id>` -> partition -> from the first of them to behind the last."""

    def document(self) -> dict[str, Any]:
        within = {
            source: {str(partition): list(span) for partition, span in partitions.items()}
            for source, partitions in self.within.items()
        }
        return {"seq": self.seq, "attempt": self.attempt, "rows": self.rows, "within": within}

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Self:
        within = {
            source: {int(partition): (span[0], span[1]) for partition, span in partitions.items()}
            for source, partitions in document["within"].items()
        }
        return cls(document["seq"], document["attempt"], document["rows"], within)


def hull_of(coordinates: Iterable[tuple[str, int, int]]) -> dict[str, dict[int, Span]]:
    """The `within` of rows at (source, partition, offset), in any order."""
    found: dict[str, dict[int, Span]] = {}
    for source, partition, offset in coordinates:
        partitions = found.setdefault(source, {})
        start, until = partitions.get(partition, (offset, offset + 1))
        partitions[partition] = (min(start, offset), max(until, offset + 1))
    return found

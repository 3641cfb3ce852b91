"""What a commit says about its table's progress: the document, and the arithmetic on it.

Rows present in bronze are `[floor, end)` minus `gaps` of every partition (`architecture` §5).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from cdc_lakehouse import __version__
from cdc_lakehouse.errors import LedgerVersionError

LEDGER_VERSION = 1
APPLICATION_ID = "cdc_lakehouse"
"""Delta transaction id whose version is `seq`: the fence of compare-and-set."""


class Kind(StrEnum):
    BRONZE = "bronze"
    SILVER = "silver"


@dataclass(frozen=True, slots=True)
class Progress:
    """One partition of one topic incarnation."""

    floor: int
    end: int
    gaps: tuple[tuple[int, int], ...] = ()
    epochs: tuple[tuple[int, int], ...] = ()
    """`(from offset, source epoch)`: which incarnation of the source an offset belongs to."""


Ranges = Mapping[str, Mapping[int, tuple[int, int]]]
"""`<topic>@<topic_id>` -> partition -> [from, until)."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """Progress of one table after one commit."""

    kind: Kind
    pipeline: str
    table: str
    cluster_id: str
    seq: int = 0
    attempt: str = ""
    sources: Mapping[str, Mapping[int, Progress]] = field(default_factory=dict)
    added: Ranges = field(default_factory=dict)
    redo: tuple[Any, ...] = ()
    seen_through: str | None = None
    valid_through: str | None = None

    def advanced(self, added: Ranges, *, attempt: str, seen_through: str | None) -> Ledger:
        """The ledger of the commit that adds `added` behind the end of each partition."""
        sources = {source: dict(partitions) for source, partitions in self.sources.items()}
        for source, partitions in added.items():
            known = sources.setdefault(source, {})
            for partition, (start, end) in partitions.items():
                before = known.get(partition, Progress(floor=start, end=start))
                known[partition] = replace(before, end=end)
        newest = max(filter(None, (self.seen_through, seen_through)), default=None)
        return replace(
            self, seq=self.seq + 1, attempt=attempt, sources=sources, added=added, seen_through=newest
        )

    def end(self, source: str, partition: int) -> int | None:
        """The next offset to read; None for a partition that this table never read."""
        progress = self.sources.get(source, {}).get(partition)
        return None if progress is None else progress.end

    def to_json(self) -> str:
        return json.dumps(
            {
                "v": LEDGER_VERSION,
                "kind": self.kind,
                "seq": self.seq,
                "pipeline": self.pipeline,
                "table": self.table,
                "attempt": self.attempt,
                "cluster_id": self.cluster_id,
                "sources": {
                    source: {str(p): _progress_document(progress) for p, progress in partitions.items()}
                    for source, partitions in self.sources.items()
                },
                "added": {
                    source: {str(p): list(pair) for p, pair in partitions.items()}
                    for source, partitions in self.added.items()
                },
                "redo": list(self.redo),
                "seen_through": self.seen_through,
                "valid_through": self.valid_through,
                "code_version": __version__,
            },
            sort_keys=True,
        )

    @classmethod
    def from_json(cls, text: str, *, table: str) -> Ledger | None:
        """None when `text` is not one of our documents; somebody else's metadata is not an error."""
        try:
            document = json.loads(text)
        except ValueError:
            return None
        if not isinstance(document, dict) or not {"v", "kind", "seq", "sources"} <= document.keys():
            return None
        if document["v"] != LEDGER_VERSION:
            raise LedgerVersionError(table=table, found=str(document["v"]), known=LEDGER_VERSION)
        return cls(
            kind=Kind(document["kind"]),
            pipeline=document["pipeline"],
            table=document["table"],
            cluster_id=document["cluster_id"],
            seq=document["seq"],
            attempt=document["attempt"],
            sources={
                source: {int(p): _progress(progress) for p, progress in partitions.items()}
                for source, partitions in document["sources"].items()
            },
            added={
                source: {int(p): (pair[0], pair[1]) for p, pair in partitions.items()}
                for source, partitions in document["added"].items()
            },
            redo=tuple(document["redo"]),
            seen_through=document["seen_through"],
            valid_through=document["valid_through"],
        )


def present(ledger: Ledger) -> Iterator[tuple[str, int, tuple[int, int]]]:
    """Every (source, partition, [from, until)) whose rows the table holds."""
    for source, partitions in ledger.sources.items():
        for partition, progress in partitions.items():
            start = progress.floor
            for gap_start, gap_end in sorted(progress.gaps):
                if start < gap_start:
                    yield source, partition, (start, gap_start)
                start = gap_end
            if start < progress.end:
                yield source, partition, (start, progress.end)


def by_topic(ranges: Ranges) -> dict[str, dict[str, tuple[int, int]]]:
    """As a result tells them: topic -> partition -> [from, until)."""
    return {
        topic_of(source): {str(partition): pair for partition, pair in partitions.items()}
        for source, partitions in ranges.items()
    }


def topic_of(source: str) -> str:
    """`shop.public.orders@<id>` -> `shop.public.orders`."""
    return source.rpartition("@")[0]


def _progress(document: Mapping[str, Any]) -> Progress:
    return Progress(
        floor=document["floor"],
        end=document["end"],
        gaps=tuple((a, b) for a, b in document["gaps"]),
        epochs=tuple((start, epoch) for start, epoch in document["epochs"]),
    )


def _progress_document(progress: Progress) -> dict[str, Any]:
    return {
        "floor": progress.floor,
        "end": progress.end,
        "gaps": [list(gap) for gap in progress.gaps],
        "epochs": [list(epoch) for epoch in progress.epochs],
    }

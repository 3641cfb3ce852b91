"""Which parts of a table's gaps Kafka still holds, and in which batches they are read: decisions, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from cdc_lakehouse.kafka.facts import TopicFacts
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.progress import Span, shared, subtracted
from cdc_lakehouse.lake.spans import Spans, each_span, offsets_in, told


@dataclass(frozen=True, slots=True)
class FillPlan:
    asked: bool = False
    held: Spans = field(default_factory=dict)
    """Parts of gaps that Kafka holds of the very incarnation that they are missing of."""
    gone: Spans = field(default_factory=dict)
    """All other parts: gaps for good."""

    @property
    def offsets(self) -> int:
        """To be read; transactions and compaction leave fewer records than that."""
        return offsets_in(self.held)

    def decision(self, filled: Spans, *, left: Spans) -> dict[str, object]:
        """As a report tells it; nothing where nobody asked."""
        return {"fill_gaps": {"filled": told(filled), "left": told(left)}} if self.asked else {}


NO_FILL = FillPlan()


def plan_fill(ledger: Ledger, topics: Iterable[TopicFacts], sources: Mapping[str, str]) -> FillPlan:
    """`sources` says under which name records of a topic come in now: gaps of another went with it."""
    kept = {sources[topic.name]: topic for topic in topics}
    held: dict[str, dict[int, tuple[Span, ...]]] = {}
    gone: dict[str, dict[int, tuple[Span, ...]]] = {}
    for source, partitions in ledger.gaps().items():
        for partition, gaps in partitions.items():
            offsets = kept[source].partitions.get(partition) if source in kept else None
            there = shared(gaps, [] if offsets is None else [(offsets.earliest, offsets.latest)])
            for found, parts in ((held, there), (gone, subtracted(gaps, there))):
                if parts:
                    found.setdefault(source, {})[partition] = parts
    return FillPlan(asked=True, held=held, gone=gone)


def batches(spans: Spans, *, limit: int) -> Iterator[Spans]:
    """All of `spans`, at most `limit` offsets at a time."""
    batch: dict[str, dict[int, tuple[Span, ...]]] = {}
    room = limit
    for source, partition, (start, until) in each_span(spans):
        for first in _cuts(start, until, room=room, limit=limit):
            part = (first, min(until, first + room))
            partitions = batch.setdefault(source, {})
            partitions[partition] = (*partitions.get(partition, ()), part)
            room -= part[1] - part[0]
            if room == 0:
                yield batch
                batch, room = {}, limit
    if batch:
        yield batch


def _cuts(start: int, until: int, *, room: int, limit: int) -> Iterator[int]:
    """Where the parts of a span begin: the first has the room that is left, the others all of it."""
    yield start
    yield from range(start + room, until, limit)


def filled(ledger: Ledger, spans: Spans, *, attempt: str, seen_through: str | None) -> Ledger:
    """The ledger of the commit that brings the rows of `spans` back: no gaps any more, and no new end."""
    sources = {source: dict(partitions) for source, partitions in ledger.sources.items()}
    for source, partition, span in each_span(spans):
        sources[source][partition] = sources[source][partition].filled(span)
    after = ledger.amended(sources, attempt=attempt, decisions={"fill_gaps": told(spans)})
    newest = max(filter(None, (ledger.seen_through, seen_through)), default=None)
    return replace(after, seen_through=newest)

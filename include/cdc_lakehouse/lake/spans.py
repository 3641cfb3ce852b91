"""Several ranges per partition as one value: what is missing of a table, and which parts of it come back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cdc_lakehouse.lake.ledger import Ranges, topic_of
from cdc_lakehouse.lake.progress import Span, joined, subtracted

Spans = Mapping[str, Mapping[int, tuple[Span, ...]]]
"""`<topic>@<topic_id>` -> partition -> [from, until), in order and apart from each other."""


def spans_of(ranges: Ranges) -> Spans:
    return {source: {p: (span,) for p, span in partitions.items()} for source, partitions in ranges.items()}


def hull_of(spans: Spans) -> Ranges:
    """From the first offset of each partition to behind the last, whatever lies between."""
    return {
        source: {p: (parts[0][0], parts[-1][1]) for p, parts in partitions.items()}
        for source, partitions in spans.items()
    }


def together(one: Spans, other: Spans) -> Spans:
    found = {source: dict(partitions) for source, partitions in one.items()}
    for source, partitions in other.items():
        known = found.setdefault(source, {})
        for partition, parts in partitions.items():
            known[partition] = joined([*known.get(partition, ()), *parts])
    return found


def without(one: Spans, other: Spans) -> Spans:
    """Offsets of the first that are not in the second; partitions of which none is left vanish."""
    found = {
        source: {
            p: left
            for p, parts in ps.items()
            if (left := subtracted(parts, other.get(source, {}).get(p, ())))
        }
        for source, ps in one.items()
    }
    return {source: partitions for source, partitions in found.items() if partitions}


def coarse(spans: Spans, *, most: int) -> Spans:
    """The same offsets, and those between them where there were more than `most` parts."""
    return spans if sum(1 for _ in each_span(spans)) <= most else spans_of(hull_of(spans))


def each_span(spans: Spans) -> Iterator[tuple[str, int, Span]]:
    """(source, partition, span), in order."""
    for source, partitions in sorted(spans.items()):
        for partition, parts in sorted(partitions.items()):
            for part in parts:
                yield source, partition, part


def offsets_in(spans: Spans) -> int:
    return sum(until - start for _, _, (start, until) in each_span(spans))


def told(spans: Spans) -> dict[str, dict[str, list[list[int]]]]:
    """As a document tells them."""
    return {
        source: {str(p): [list(part) for part in parts] for p, parts in partitions.items()}
        for source, partitions in spans.items()
    }


def in_words(spans: Spans) -> str:
    """`shop.public.orders/0 [5, 9)`, all of them."""
    return ", ".join(
        f"{topic_of(source)}/{partition} [{start}, {until})"
        for source, partition, (start, until) in each_span(spans)
    )

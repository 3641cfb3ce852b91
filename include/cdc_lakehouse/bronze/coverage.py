"""Whether the files of a batch can be what Kafka holds in its range: a decision on values, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cdc_lakehouse.bronze.written_file import Span, WrittenFile
from cdc_lakehouse.errors import BatchMisfitError
from cdc_lakehouse.lake.ledger import topic_of
from cdc_lakehouse.lake.spans import Spans


def refuse_misfit(files: Iterable[WrittenFile], added: Spans, *, table: str) -> None:
    """Raises before anything is committed: a record outside of each range, one twice, one too many.

    Fewer records than offsets are right: compaction and transactions leave gaps.
    """
    found = list(files)
    for problem in (*_miscounted(found), *_outside(found, added), *_twice(found)):
        raise BatchMisfitError(table=table, problem=problem)


def _miscounted(files: Iterable[WrittenFile]) -> Iterator[str]:
    for file in files:
        counted = sum(span.rows for span in file.spans)
        if counted != file.rows:
            yield f"{file.name} has {file.rows} rows, of which {counted} have a place in Kafka"


def _outside(files: Iterable[WrittenFile], added: Spans) -> Iterator[str]:
    ranges = {
        (topic_of(source), partition): parts
        for source, partitions in added.items()
        for partition, parts in partitions.items()
    }
    for span in _spans(files):
        parts = ranges.get((span.topic, span.partition), ())
        if not any(start <= span.first <= span.last < until for start, until in parts):
            yield f"{_told(span)} outside of {', '.join(f'[{a}, {b})' for a, b in parts) or 'all ranges'}"
        elif span.rows > span.last - span.first + 1:
            yield f"{_told(span)} in {span.rows} rows"


def _twice(files: Iterable[WrittenFile]) -> Iterator[str]:
    """Offsets ascend within a file, so two spans share a record only if they overlap."""
    ends: dict[tuple[str, int], Span] = {}
    for span in sorted(_spans(files), key=lambda span: span.first):
        before = ends.get((span.topic, span.partition))
        if before is not None and span.first <= before.last:
            yield f"{_told(span)} beside {_told(before)}"
        if before is None or span.last > before.last:
            ends[span.topic, span.partition] = span


def _spans(files: Iterable[WrittenFile]) -> Iterator[Span]:
    return (span for file in files for span in file.spans)


def _told(span: Span) -> str:
    return f"{span.topic}/{span.partition} {span.first}..{span.last}"

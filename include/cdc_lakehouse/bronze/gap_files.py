"""When the records of a gap came to Kafka, as the rows beside it in a few files tell: no Spark.

Statistics of the log say which files may have the row before a gap, or behind it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.lake.interval import KAFKA_TIME, MOST_FILES, SOURCE_TIME, Interval
from cdc_lakehouse.lake.ledger import incarnation_of, topic_of
from cdc_lakehouse.lake.progress import Span
from cdc_lakehouse.lake.rows import batches_of
from cdc_lakehouse.lake.snapshot import DataFile, Snapshot, newest_snapshot
from cdc_lakehouse.lake.spans import Spans, each_span

TOPIC_ID = "topic_id"
_COLUMNS = ("topic", TOPIC_ID, "partition", "offset", KAFKA_TIME, SOURCE_TIME[0])
_COMMITTED = "committed"
_INSTANT = pa.timestamp("us", tz="UTC")
_NOWHERE = 2**63
_MOST_ROWS = 1_000_000


class TooManyFilesError(Exception):
    """A look would have to open more files than it may."""


@dataclass(frozen=True, slots=True)
class Beside:
    """Times of the row before a gap and of the one behind it, in microseconds; None where nothing tells."""

    before: int | None
    behind: int | None

    def may_lie_in(self, interval: Interval) -> bool:
        """Return whether records of the gap may belong to the interval.

        A gap lies behind the interval, or before it, if the row before it, or behind it, says so. Without
        such a row nothing is known, and the gap counts.
        """
        begins, ends = interval.micros
        starts_late = self.before is not None and self.before >= ends
        ends_early = self.behind is not None and self.behind < begins
        return not starts_late and not ends_early


def gaps_by_files(uri: str, gaps: Spans, interval: Interval, *, sources: Collection[str]) -> Spans | None:
    """Return the gaps that may hold records of the interval; None where that takes more than a look.

    `sources` are all incarnations of topics that the table has read.
    """
    snapshot = newest_snapshot(uri)
    if snapshot is None:
        return gaps
    rows = _Rows(snapshot, sources)
    within: dict[str, dict[int, tuple[Span, ...]]] = {}
    try:
        for source, partition, gap in each_span(gaps):
            if rows.beside(source, partition, gap).may_lie_in(interval):
                partitions = within.setdefault(source, {})
                partitions[partition] = (*partitions.get(partition, ()), gap)
    except TooManyFilesError:
        return None
    return within


@dataclass(frozen=True, slots=True)
class _Row:
    offset: int
    came: int | None
    committed: int | None


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of bronze by their coordinates; each file is opened once, and not more than `MOST_FILES`."""

    snapshot: Snapshot
    sources: Collection[str]
    opened: dict[str, pa.Table] = field(default_factory=dict)

    def beside(self, source: str, partition: int, gap: Span) -> Beside:
        """Return the times beside a gap. Behind the last row of a topic stands the first of the next one."""
        start, until = gap
        own = (pc.field("topic") == topic_of(source)) & (pc.field("partition") == partition)
        own &= pc.is_null(pc.field(TOPIC_ID)) | (pc.field(TOPIC_ID) == incarnation_of(source))
        before = self._last_below(own, partition, start)
        behind = self._first_from(own, partition, until)
        came = None if behind is None else behind.came
        if behind is None and before is not None and before.came is not None:
            came = self._first_time_of_next(source, after=before.came)
        times = () if before is None else (before.came, before.committed)
        return Beside(min((time for time in times if time is not None), default=None), came)

    def _last_below(self, own: pc.Expression, partition: int, start: int) -> _Row | None:
        files = [file for file in self._files(partition) if _first_offset(file) < start]
        best: _Row | None = None
        for file in sorted(files, key=_last_offset, reverse=True):
            if best is not None and _last_offset(file) < best.offset:
                break
            rows = self._opened(file).filter(own & (pc.field("offset") < start))
            row = _row_at(rows, pc.max(rows["offset"]))
            best = row if best is None or (row is not None and row.offset > best.offset) else best
        return best

    def _first_from(self, own: pc.Expression, partition: int, until: int) -> _Row | None:
        files = [file for file in self._files(partition) if _last_offset(file) >= until]
        best: _Row | None = None
        for file in sorted(files, key=_first_offset):
            if best is not None and _first_offset(file) > best.offset:
                break
            rows = self._opened(file).filter(own & (pc.field("offset") >= until))
            row = _row_at(rows, pc.min(rows["offset"]))
            best = row if best is None or (row is not None and row.offset < best.offset) else best
        return best

    def _first_time_of_next(self, source: str, *, after: int) -> int | None:
        """Return when the next incarnation of a topic had its first row, behind the time `after`."""
        topic = topic_of(source)
        if not any(topic_of(other) == topic for other in self.sources if other != source):
            return None
        other = (pc.field("topic") == topic) & (pc.field(TOPIC_ID) != incarnation_of(source))
        other &= pc.field(KAFKA_TIME) > after
        found = [pc.min(self._opened(file).filter(other)[KAFKA_TIME]) for file in self.snapshot.files]
        return min((time.as_py() for time in found if time.is_valid), default=None)

    def _opened(self, file: DataFile) -> pa.Table:
        if file.path not in self.opened:
            if len(self.opened) == MOST_FILES:
                raise TooManyFilesError
            columns = [name for name in _COLUMNS if name in self.snapshot.schema.names]
            parts = batches_of(replace(self.snapshot, files=(file,)), columns, most=_MOST_ROWS)
            self.opened[file.path] = pa.concat_tables(map(_with_micros, parts))
        return self.opened[file.path]

    def _files(self, partition: int) -> Iterator[DataFile]:
        """Yield the files that may have rows of the partition."""
        for file in self.snapshot.files:
            if file.oldest.get("partition", 0) <= partition <= file.newest.get("partition", _NOWHERE):
                yield file


def _with_micros(rows: pa.Table) -> pa.Table:
    """Return the coordinates of rows, and their times in microseconds."""
    committed = pc.struct_field(rows[SOURCE_TIME[0]].combine_chunks(), SOURCE_TIME[1])
    topic_id = rows[TOPIC_ID] if TOPIC_ID in rows.column_names else pa.nulls(len(rows), pa.string())
    times = {KAFKA_TIME: rows[KAFKA_TIME].cast(_INSTANT).cast(pa.int64())}
    times[_COMMITTED] = committed.cast(_INSTANT).cast(pa.int64())
    coordinates = {name: rows[name] for name in ("topic", "partition", "offset")}
    return pa.table({**coordinates, TOPIC_ID: topic_id, **times})


def _row_at(rows: pa.Table, offset: pa.Scalar) -> _Row | None:
    if not offset.is_valid:
        return None
    row = rows.filter(pc.field("offset") == offset).slice(0, 1).to_pylist()[0]
    return _Row(row["offset"], row[KAFKA_TIME], row[_COMMITTED])


def _first_offset(file: DataFile) -> int:
    return int(file.oldest.get("offset", 0))


def _last_offset(file: DataFile) -> int:
    return int(file.newest.get("offset", _NOWHERE))

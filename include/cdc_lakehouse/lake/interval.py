"""The interval of time that a run is asked to make complete, and how much of a bronze table lies in it.

An event belongs to an interval by the time of its record in Kafka, or by its commit at the source: the two
differ where a connector was away. A few events more do no harm, since silver is a function of all events.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_lakehouse.contract import JobRequest
from cdc_lakehouse.errors import InvalidIntervalError, StorageUnavailableError
from cdc_lakehouse.lake.filesystem import filesystem_of
from cdc_lakehouse.lake.instants import parse_moment
from cdc_lakehouse.lake.quarantine import CASE_TIMES, times_of_cases, waiting_records
from cdc_lakehouse.lake.rows import kept_rows, naming_damage
from cdc_lakehouse.lake.snapshot import DataFile, newest_snapshot
from cdc_lakehouse.run_modes import Recompute

KAFKA_TIME = "kafka_timestamp"
SOURCE_TIME = ("source", "ts")
COMMIT_TIME = ".".join(SOURCE_TIME)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOST_FILES = 64
"""Files that a look opens at most. Beyond, the job looks for itself."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Half open: `start` belongs to it, `until` does not."""

    start: datetime
    until: datetime
    recompute: Recompute = Recompute.ALL
    also_drain: bool = False

    def __str__(self) -> str:
        return f"{self.start.isoformat()} until {self.until.isoformat()}"

    @property
    def micros(self) -> tuple[int, int]:
        """Both ends in microseconds since 1970."""
        return _micros(self.start), _micros(self.until)

    def document(self) -> dict[str, str]:
        """Return what ledger and report keep of it."""
        return {
            "from": self.start.isoformat(),
            "until": self.until.isoformat(),
            "recompute": self.recompute.value,
        }

    @classmethod
    def asked_for(cls, request: JobRequest, *, timezone: str, now: datetime) -> Self | None:
        """Return the interval of a request, None where it has none.

        A time without an offset is one of `timezone`. Raises `InvalidIntervalError`.
        """
        start, until = request.from_time, request.until_time
        if start is None and until is None and request.recompute is None and not request.also_drain:
            return None
        names = f"{start or 'nothing'} until {until or 'nothing'}"
        if start is None or until is None:
            raise InvalidIntervalError(interval=names, problem="it needs a beginning and an end")
        interval = cls(
            _instant(start, timezone, interval=names),
            _instant(until, timezone, interval=names),
            request.recompute or Recompute.ALL,
            request.also_drain,
        )
        if interval.start >= interval.until:
            raise InvalidIntervalError(interval=names, problem="it ends before it begins")
        if interval.until > now:
            problem = f"it ends in the future, now is {now.isoformat(timespec='seconds')}"
            raise InvalidIntervalError(interval=names, problem=problem)
        return interval


@dataclass(frozen=True, slots=True)
class RowsOfInterval:
    """Rows of bronze by their time in Kafka, and whether any row belongs to the interval at all."""

    by_kafka_time: int
    any_row: bool


def rows_of_interval(uri: str, interval: Interval) -> RowsOfInterval | None:
    """Count rows of the interval without Spark; None where more files would be opened than a look may.

    Statistics of the log say when the records of a file came to Kafka and when they were committed, so only
    files that lie across an end of the interval are opened. Where records of the interval came to Kafka,
    nobody has to know whether others were committed in it. A source commits before its record is in Kafka, so
    older files have no row of the interval; files of earlier releases have no statistics of their commits.
    """
    snapshot = newest_snapshot(uri)
    files = () if snapshot is None else snapshot.files
    counted = [_lies_within(file, interval) for file in files]
    cut = [
        file
        for file, rows in zip(files, counted, strict=True)
        if rows is None and _overlaps(_kafka_bounds(file), interval)
    ]
    if len(cut) > MOST_FILES:
        return None
    by_kafka_time = sum(filter(None, counted)) + sum(
        _count_rows(uri, file, interval, KAFKA_TIME) for file in cut
    )
    if by_kafka_time:
        return RowsOfInterval(by_kafka_time, any_row=True)
    may_commit = [file for file in files if _may_have_commits(file, interval)]
    if len(may_commit) > MOST_FILES:
        return None
    return RowsOfInterval(0, any(_count_rows(uri, file, interval, COMMIT_TIME) for file in may_commit))


def count_cases(uri: str, interval: Interval) -> int:
    """Count undecodable records of the interval that wait."""
    times = times_of_cases(uri)
    return 0 if times is None else int(pc.sum(_is_case_within(times, interval)).as_py() or 0)


def records_of_cases(uri: str, interval: Interval, *, most: int) -> pa.Table | None:
    """Return undecodable records of the interval as Kafka gave them; None without any, or beyond `most`."""
    records = waiting_records(uri)
    if records is None:
        return None
    within = records.filter(_is_case_within(records, interval)).drop_columns([CASE_TIMES[1]])
    return within if 0 < len(within) <= most else None


def _is_case_within(cases: pa.Table, interval: Interval) -> Any:
    in_kafka, committed = (_is_within(cases[name], interval) for name in CASE_TIMES)
    return pc.or_kleene(in_kafka, committed)


def _instant(text: str, timezone: str, *, interval: str) -> datetime:
    try:
        return parse_moment(text, timezone=timezone)
    except ValueError as exc:
        raise InvalidIntervalError(interval=interval, problem=str(exc)) from None


_Bounds = tuple[datetime | None, datetime | None]
"""The oldest and the newest time of a file as the log states them; None where it does not."""


def _kafka_bounds(file: DataFile) -> _Bounds:
    return _moment(file.oldest.get(KAFKA_TIME)), _moment(file.newest.get(KAFKA_TIME))


def _commit_bounds(file: DataFile) -> _Bounds:
    struct, name = SOURCE_TIME
    return (
        _moment((file.oldest.get(struct) or {}).get(name)),
        _moment((file.newest.get(struct) or {}).get(name)),
    )


def _moment(stated: str | None) -> datetime | None:
    return None if stated is None else datetime.fromisoformat(stated)


def _overlaps(bounds: _Bounds, interval: Interval) -> bool:
    """Return whether a time between `bounds` may lie in the interval; unknown bounds exclude nothing."""
    oldest, newest = bounds
    begins_before_end = oldest is None or oldest < interval.until
    return begins_before_end and (newest is None or newest >= interval.start)


def _may_have_commits(file: DataFile, interval: Interval) -> bool:
    came_since = _overlaps((None, _kafka_bounds(file)[1]), interval)
    return came_since and _overlaps(_commit_bounds(file), interval)


def _lies_within(file: DataFile, interval: Interval) -> int | None:
    """Return the rows of a file all of whose records came within the interval; None for other files."""
    oldest, newest = _kafka_bounds(file)
    if oldest is None or newest is None or file.rows is None or file.nulls.get(KAFKA_TIME) != 0:
        return None
    deleted = 0 if file.deleted is None else file.deleted.cardinality
    return file.rows - deleted if interval.start <= oldest and newest < interval.until else None


def _count_rows(uri: str, file: DataFile, interval: Interval, column: str) -> int:
    """Count the rows of a file whose time in `column` lies within the interval."""
    filesystem, root = filesystem_of(uri)
    try:
        kept, first, count = kept_rows(file, filesystem=filesystem, folder=root), 0, 0
        with naming_damage(uri, file), filesystem.open_input_file(f"{root}/{file.path}") as stream:
            parquet = pq.ParquetFile(
                stream, coerce_int96_timestamp_unit="us", page_checksum_verification=True
            )
            for group in range(parquet.num_row_groups):
                rows = parquet.read_row_group(group, columns=[column])
                behind = first + rows.num_rows
                if kept is not None:
                    rows = rows.filter(pa.array(kept[first:behind]))
                first = behind
                count += int(pc.sum(_is_within(_times_in(rows, column), interval)).as_py() or 0)
    except OSError as exc:
        raise StorageUnavailableError(root=f"{uri}/{file.path}", reason=str(exc)) from exc
    return count


def _times_in(rows: pa.Table, column: str) -> Any:
    name, _, member = column.partition(".")
    values = rows[name].combine_chunks()
    return pc.struct_field(values, member) if member else values


def _is_within(times: Any, interval: Interval) -> Any:
    start, until = interval.micros
    micros = times.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    return pc.and_(pc.greater_equal(micros, start), pc.less(micros, until))


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)

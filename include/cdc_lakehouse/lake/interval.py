"""The interval of time that a run is asked to make complete, and how much of a bronze table lies in it.

An event belongs to an interval by the time of its record in Kafka, or by its commit at the source: the two
differ where a connector was away. A few events more do no harm, since silver is a function of all events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_lakehouse.contract import JobRequest, Recompute
from cdc_lakehouse.errors import InvalidIntervalError, StorageUnavailableError
from cdc_lakehouse.lake.filesystem import filesystem_of
from cdc_lakehouse.lake.quarantine import CASE_TIMES, times_of_cases
from cdc_lakehouse.lake.rows import kept_rows, naming_damage
from cdc_lakehouse.lake.snapshot import DataFile, newest_snapshot

KAFKA_TIME = "kafka_timestamp"
SOURCE_TIME = ("source", "ts")
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

    Statistics of the log say when the records of a file came to Kafka. A source commits before its record is
    in Kafka, so older files have no row of the interval.
    """
    snapshot = newest_snapshot(uri)
    files = () if snapshot is None else snapshot.files
    concerned = [file for file in files if _may_concern(file, interval)]
    if len(concerned) > MOST_FILES:
        return None
    by_kafka_time, any_row = 0, False
    for file in concerned:
        within = _lies_within(file, interval)
        if within is not None:
            by_kafka_time, any_row = by_kafka_time + within, any_row or within > 0
            continue
        for in_kafka, in_source in _times_of(uri, file, interval):
            by_kafka_time += in_kafka
            any_row = any_row or in_kafka > 0 or in_source > 0
    return RowsOfInterval(by_kafka_time, any_row)


def count_cases(uri: str, interval: Interval) -> int:
    """Count undecodable records of the interval that wait."""
    found = times_of_cases(uri)
    if found is None:
        return 0
    in_kafka, committed = (_is_within(found[name], interval) for name in CASE_TIMES)
    return int(pc.sum(pc.or_kleene(in_kafka, committed)).as_py() or 0)


def _instant(text: str, timezone: str, *, interval: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        problem = f"{text!r} is no time like 2026-11-03T14:00:00+00:00"
        raise InvalidIntervalError(interval=interval, problem=problem) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(timezone))).astimezone(UTC)


def _may_concern(file: DataFile, interval: Interval) -> bool:
    newest = file.newest.get(KAFKA_TIME)
    return newest is None or datetime.fromisoformat(newest) >= interval.start


def _lies_within(file: DataFile, interval: Interval) -> int | None:
    """Return the rows of a file all of whose records came within the interval; None for other files."""
    oldest, newest = file.oldest.get(KAFKA_TIME), file.newest.get(KAFKA_TIME)
    if oldest is None or newest is None or file.rows is None or file.nulls.get(KAFKA_TIME) != 0:
        return None
    is_within = interval.start <= datetime.fromisoformat(oldest)
    is_within = is_within and datetime.fromisoformat(newest) < interval.until
    deleted = 0 if file.deleted is None else file.deleted.cardinality
    return file.rows - deleted if is_within else None


def _times_of(uri: str, file: DataFile, interval: Interval) -> Iterator[tuple[int, int]]:
    """Yield how many rows of each row group belong to the interval by Kafka's time, and by the source's."""
    filesystem, root = filesystem_of(uri)
    try:
        kept, first = kept_rows(file, filesystem=filesystem, folder=root), 0
        with naming_damage(uri, file), filesystem.open_input_file(f"{root}/{file.path}") as stream:
            parquet = pq.ParquetFile(
                stream, coerce_int96_timestamp_unit="us", page_checksum_verification=True
            )
            for group in range(parquet.num_row_groups):
                rows = parquet.read_row_group(group, columns=[KAFKA_TIME, ".".join(SOURCE_TIME)])
                behind = first + rows.num_rows
                if kept is not None:
                    rows = rows.filter(pa.array(kept[first:behind]))
                first = behind
                committed = pc.struct_field(rows["source"].combine_chunks(), "ts")
                yield _count_within(rows[KAFKA_TIME], interval), _count_within(committed, interval)
    except OSError as exc:
        raise StorageUnavailableError(root=f"{uri}/{file.path}", reason=str(exc)) from exc


def _count_within(times: Any, interval: Interval) -> int:
    return int(pc.sum(_is_within(times, interval)).as_py() or 0)


def _is_within(times: Any, interval: Interval) -> Any:
    start, until = interval.micros
    micros = times.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    return pc.and_(pc.greater_equal(micros, start), pc.less(micros, until))


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)

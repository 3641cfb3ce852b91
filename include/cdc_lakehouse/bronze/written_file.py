"""The one line that a worker hands back per file: all that the driver learns of the rows in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem

from cdc_lakehouse.bronze.log_runs import LogRun, PositionColumns, chunk_runs, log_runs
from cdc_lakehouse.errors import StorageUnavailableError
from cdc_lakehouse.lake.filesystem import filesystem_of
from cdc_lakehouse.lake.instants import instant
from cdc_lakehouse.lake.progress import Spot

BAD_ROWS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class BadRow:
    """Where an undecodable record is, and what it claims to be. Never its values."""

    topic: str
    partition: int
    offset: int
    key_schema_id: int | None
    value_schema_id: int | None
    """Null where a GUID names the schema."""


@dataclass(frozen=True, slots=True)
class Span:
    """Records of one partition, whose offsets ascend from `first` to `last`, both included."""

    topic: str
    partition: int
    first: int
    last: int
    rows: int


@dataclass(frozen=True, slots=True)
class SnapshotStart:
    """Where rows of one full snapshot begin in a partition (`cdc-semantics` §2.5)."""

    topic: str
    partition: int
    tx_id: int
    offset: int
    place: Spot | None = None
    """The place in the source's log at which it was taken; None where its rows do not say it."""

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> SnapshotStart:
        place = document["place"]
        return cls(**{**document, "place": None if place is None else (place[0], place[1])})


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    name: str
    size: int
    modified: int
    rows: int
    spans: tuple[Span, ...]
    timestamps: tuple[int, int] | None = None
    """Oldest and newest `kafka_timestamp` in microseconds, where any record has one."""
    without_timestamp: int = 0
    commits: tuple[int, int] | None = None
    """Oldest and newest `source.ts` in microseconds, where any record has one."""
    out_of_range: int = 0
    errors_by_code: Mapping[str, int] = field(default_factory=dict)
    bad_rows: Mapping[str, tuple[BadRow, ...]] = field(default_factory=dict)
    """The first few of each code."""
    key_ids: tuple[int, ...] = ()
    value_ids: tuple[int, ...] = ()
    snapshots: tuple[SnapshotStart, ...] = ()
    log_runs: tuple[LogRun, ...] = ()
    """Of each partition in the order of its offsets."""
    chunk_runs: tuple[LogRun, ...] = ()
    """Rows of incremental snapshots: one run of each partition at most."""
    decode_seconds: float = 0.0

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> WrittenFile:
        document = json.loads(text)
        timestamps, commits = document["timestamps"], document["commits"]
        return cls(
            **{
                **document,
                "spans": tuple(Span(**each) for each in document["spans"]),
                "timestamps": None if timestamps is None else (timestamps[0], timestamps[1]),
                "commits": None if commits is None else (commits[0], commits[1]),
                "bad_rows": {
                    code: tuple(BadRow(**each) for each in rows)
                    for code, rows in document["bad_rows"].items()
                },
                "key_ids": tuple(document["key_ids"]),
                "value_ids": tuple(document["value_ids"]),
                "snapshots": tuple(SnapshotStart.of_document(each) for each in document["snapshots"]),
                "log_runs": tuple(LogRun.of_document(each) for each in document["log_runs"]),
                "chunk_runs": tuple(LogRun.of_document(each) for each in document["chunk_runs"]),
            }
        )

    def statistics(self) -> dict[str, Any]:
        """As Delta keeps them with a file, for the columns that bronze is read by."""
        least: dict[str, Any] = {
            "topic": min(span.topic for span in self.spans),
            "partition": min(span.partition for span in self.spans),
            "offset": min(span.first for span in self.spans),
        }
        most: dict[str, Any] = {
            "topic": max(span.topic for span in self.spans),
            "partition": max(span.partition for span in self.spans),
            "offset": max(span.last for span in self.spans),
        }
        told = _told_timestamps(self.timestamps)
        if told is not None:
            least["kafka_timestamp"], most["kafka_timestamp"] = told
        committed = _told_timestamps(self.commits)
        if committed is not None:
            least["source"], most["source"] = ({"ts": moment} for moment in committed)
        nulls: dict[str, Any] = {"topic": 0, "partition": 0, "offset": 0}
        nulls["kafka_timestamp"] = self.without_timestamp
        # How many records of it are in quarantine, for whoever counts them without opening the file.
        nulls["decode_error"] = {"code": self.rows - sum(self.errors_by_code.values())}
        return {"numRecords": self.rows, "minValues": least, "maxValues": most, "nullCount": nulls}


def with_runs_apart(
    files: Sequence[WrittenFile], straddling: Mapping[tuple[str, int], Sequence[int]], *, folder: str
) -> list[WrittenFile]:
    """Read the positions of the `straddling` partitions again, and split their runs at the commits given.

    This is needed where a full snapshot is taken again while other partitions are streamed: a worker does not
    know at which commit another one meets the snapshot. A second call returns the same.
    """
    filesystem, root = filesystem_of(folder)
    try:
        return [
            _with_split_runs(file, straddling, path=f"{root}/{file.name}", on=filesystem) for file in files
        ]
    except OSError as exc:
        raise StorageUnavailableError(root=folder, reason=str(exc)) from exc


def _with_split_runs(
    file: WrittenFile, straddling: Mapping[tuple[str, int], Sequence[int]], *, path: str, on: FileSystem
) -> WrittenFile:
    split = [span for span in file.spans if (span.topic, span.partition) in straddling]
    if not split:
        return file
    columns = ["topic", "partition", "offset", "position"]
    rows = pq.read_table(
        path, columns=columns, filesystem=on, partitioning=None, page_checksum_verification=True
    )
    runs = [run for run in file.log_runs if (run.topic, run.partition) not in straddling]
    chunks = [run for run in file.chunk_runs if (run.topic, run.partition) not in straddling]
    for span in split:
        place = span.topic, span.partition
        is_of_span = (pc.field("topic") == span.topic) & (pc.field("partition") == span.partition)
        part = rows.filter(is_of_span).combine_chunks()
        offsets, positions = part["offset"].to_numpy(), PositionColumns.of(part["position"].combine_chunks())
        runs += log_runs(*place, offsets, positions, apart_at=straddling[place])
        chunks += chunk_runs(*place, offsets, positions, apart_at=straddling[place])
    return replace(file, log_runs=tuple(runs), chunk_runs=tuple(chunks))


def _told_timestamps(bounds: tuple[int, int] | None) -> tuple[str, str] | None:
    """Whole milliseconds around them, as Delta writes them; none for years that no date has."""
    if bounds is None:
        return None
    oldest = instant(bounds[0] // 1000 * 1000)
    newest = instant(-(-bounds[1] // 1000) * 1000)
    if oldest is None or newest is None:
        return None
    return _told(oldest), _told(newest)


def _told(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"

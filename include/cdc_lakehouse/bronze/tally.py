"""What the rows of one file amount to, counted in the worker while they pass by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.bronze.log_runs import LogRun, PositionColumns, chunk_runs, log_runs
from cdc_lakehouse.bronze.written_file import BAD_ROWS_SHOWN, BadRow, SnapshotStart, Span, WrittenFile
from cdc_lakehouse.lake.parquet_files import ParquetFile

_STREAMED = pa.array(["false", "incremental"])
"""Values of `source.snapshot` outside of a full snapshot, beside none at all."""
_COORDINATE = ("topic", "partition", "offset")
_SHOWN = (*_COORDINATE, "key_schema_id", "value_schema_id")
_Place = tuple[str, int]


@dataclass(slots=True)
class Tally:
    """Of rows as `debezium.bronze.bronze_schema` has them."""

    rows: int = 0
    spans: dict[_Place, Span] = field(default_factory=dict)
    timestamps: tuple[int, int] | None = None
    without_timestamp: int = 0
    commits: tuple[int, int] | None = None
    out_of_range: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    bad_rows: dict[str, list[BadRow]] = field(default_factory=dict)
    key_ids: set[int] = field(default_factory=set)
    value_ids: set[int] = field(default_factory=set)
    snapshots: dict[tuple[_Place, int], SnapshotStart] = field(default_factory=dict)
    last_read: dict[_Place, int] = field(default_factory=dict)
    """Offset of the newest row of a full snapshot."""
    log_runs: dict[_Place, list[LogRun]] = field(default_factory=dict)
    chunk_runs: dict[_Place, LogRun] = field(default_factory=dict)
    decode_seconds: float = 0.0

    def add(self, rows: pa.RecordBatch, *, decode_seconds: float) -> None:
        """Raises `ValueError` for offsets that do not ascend: Kafka gives out none of that kind."""
        self.rows += rows.num_rows
        self.decode_seconds += decode_seconds
        for place, part in _by_place(rows):
            offsets = _numbers(part.column("offset"))
            self._add_offsets(place, offsets)
            self._add_log_runs(place, offsets, PositionColumns.of(part.column("position")))
            self._add_snapshots(place, offsets, part)
        self._add_times(rows)
        self.out_of_range += rows.num_rows - rows.column("out_of_range").null_count
        self.key_ids |= _different(rows.column("key_schema_id"))
        self.value_ids |= _different(rows.column("value_schema_id"))
        errors = rows.column("decode_error")
        if errors.null_count < len(errors):
            self._add_errors(rows.select([*_SHOWN, "decode_error"]).filter(errors.is_valid()))

    def written_file(self, file: ParquetFile) -> WrittenFile:
        return WrittenFile(
            name=file.name,
            size=file.size,
            modified=file.modified,
            rows=self.rows,
            spans=tuple(self.spans.values()),
            timestamps=self.timestamps,
            without_timestamp=self.without_timestamp,
            commits=self.commits,
            out_of_range=self.out_of_range,
            errors_by_code=dict(self.errors),
            bad_rows={code: tuple(rows) for code, rows in self.bad_rows.items()},
            key_ids=tuple(sorted(self.key_ids)),
            value_ids=tuple(sorted(self.value_ids)),
            snapshots=tuple(self.snapshots.values()),
            log_runs=tuple(run for runs in self.log_runs.values() for run in runs),
            chunk_runs=tuple(self.chunk_runs.values()),
            decode_seconds=round(self.decode_seconds, 6),
        )

    def _add_offsets(self, place: _Place, offsets: np.ndarray) -> None:
        known = self.spans.get(place)
        before = -1 if known is None else known.last
        if offsets[0] <= before or not (np.diff(offsets) > 0).all():
            raise ValueError(f"offsets of {place[0]}/{place[1]} do not ascend behind {before}")
        first = int(offsets[0]) if known is None else known.first
        rows = len(offsets) + (0 if known is None else known.rows)
        self.spans[place] = Span(*place, first=first, last=int(offsets[-1]), rows=rows)

    def _add_snapshots(self, place: _Place, offsets: np.ndarray, part: pa.RecordBatch) -> None:
        source, position = part.column("source"), part.column("position")
        snapshot = pc.struct_field(source, "snapshot")
        is_read = pc.and_(snapshot.is_valid(), pc.invert(pc.is_in(snapshot, _STREAMED)))
        if not pc.any(is_read).as_py():
            return
        rows = pc.indices_nonzero(is_read)
        tx_ids = pc.struct_field(source, "tx_id").take(rows)
        for tx_id in _different(tx_ids) - {tx_id for at, tx_id in self.snapshots if at == place}:
            row = rows[pc.index(tx_ids, tx_id).as_py()].as_py()
            # Single fields: the commit time of a row may be no date that Python has.
            spot = position[row].as_py() if source[row]["lsn"].is_valid else None
            taken_at = None if spot is None else (spot["commit"], spot["row"])
            start = SnapshotStart(*place, tx_id=tx_id, offset=int(offsets[row]), place=taken_at)
            self.snapshots[place, tx_id] = start
        self.last_read[place] = int(offsets[rows[-1].as_py()])

    def _add_log_runs(self, place: _Place, offsets: np.ndarray, columns: PositionColumns) -> None:
        runs = self.log_runs.setdefault(place, [])
        for number, run in enumerate(log_runs(*place, offsets, columns)):
            goes_on = bool(runs) and number == 0 and runs[-1].knows_past == run.knows_past
            if goes_on and not self._reads_between(place, runs[-1], run, offsets[columns.is_snapshot]):
                runs[-1] = runs[-1].joined(run)
            else:
                runs.append(run)
        for run in chunk_runs(*place, offsets, columns):
            before = self.chunk_runs.get(place)
            self.chunk_runs[place] = run if before is None else before.joined(run)

    def _reads_between(self, place: _Place, run: LogRun, behind: LogRun, reads: np.ndarray) -> bool:
        """Return whether a row of a full snapshot stands between the two runs.

        `reads` are the offsets of such rows in the newest part, which holds `behind` and not `run`.
        """
        return self.last_read.get(place, -1) > run.last or bool((reads < behind.first).any())

    def _add_times(self, rows: pa.RecordBatch) -> None:
        times = rows.column("kafka_timestamp")
        self.without_timestamp += times.null_count
        self.timestamps = _widened(self.timestamps, _bounds(times))
        self.commits = _widened(self.commits, _bounds(pc.struct_field(rows.column("source"), "ts")))

    def _add_errors(self, bad: pa.RecordBatch) -> None:
        codes = pc.struct_field(bad.column("decode_error"), "code").to_pylist()
        self.errors.update(codes)
        for place, code in enumerate(codes):
            first = self.bad_rows.setdefault(code, [])
            if len(first) < BAD_ROWS_SHOWN:
                first.append(BadRow(*(bad.column(name)[place].as_py() for name in _SHOWN)))


def _widened(bounds: tuple[int, int] | None, others: tuple[int, int] | None) -> tuple[int, int] | None:
    """Return bounds around both; None where there is neither."""
    if bounds is None or others is None:
        return bounds or others
    return min(bounds[0], others[0]), max(bounds[1], others[1])


def _by_place(rows: pa.RecordBatch) -> Iterator[tuple[_Place, pa.RecordBatch]]:
    """The rows of each partition in their order; nearly always it is one, and nothing is copied."""
    if not rows.num_rows:
        return
    topics, partitions = rows.column("topic"), rows.column("partition")
    rows = rows.select(["offset", "source", "position"])
    for topic in pc.unique(topics).to_pylist():
        for partition in pc.unique(partitions).to_pylist():
            own = pc.and_(pc.equal(topics, topic), pc.equal(partitions, partition))
            part = rows if pc.all(own).as_py() else rows.filter(own)
            if part.num_rows:
                yield (topic, partition), part


def _different(column: pa.Array) -> set[int]:
    return set(pc.unique(column).to_pylist()) - {None}


def _bounds(times: pa.Array) -> tuple[int, int] | None:
    """In microseconds, as numbers: an instant may lie beyond the years that a date knows."""
    if times.null_count == len(times):
        return None
    found = pc.min_max(times.view(pa.int64()))
    return found["min"].as_py(), found["max"].as_py()


def _numbers(column: pa.Array) -> np.ndarray:
    found: np.ndarray = column.to_numpy(zero_copy_only=False)
    return found

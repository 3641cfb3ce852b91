"""Write the rows of several data files into one, in a worker. Readers see it once a commit names it.

Rows go from Arrow to Arrow, so many at a time as one row group may have: no row becomes an object, and
memory does not grow with the files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from cdc_lakehouse.errors import FileDamagedError, MissingConnectionError, StorageUnavailableError
from cdc_lakehouse.lake.delta_transaction import DataFile as NewFile
from cdc_lakehouse.lake.file_statistics import FileStatistics, IndexedColumns
from cdc_lakehouse.lake.filesystem import filesystem_of
from cdc_lakehouse.lake.parquet_files import (
    COMPRESSION,
    ROW_GROUP_BYTES,
    ROW_GROUP_ROWS,
    OpenParquetFile,
    ParquetLayout,
)
from cdc_lakehouse.lake.rows import batches_of, naming_damage, nullable_schema
from cdc_lakehouse.lake.snapshot import DataFile, Snapshot
from cdc_lakehouse.maintenance.plan import Bin

_LINE = pa.schema([(name, pa.string()) for name in ("file", "damage", "storage", "connection")])

_CODECS = {
    "SNAPPY": "snappy",
    "ZSTD": "zstd",
    "GZIP": "gzip",
    "LZ4_RAW": "lz4",
    "BROTLI": "brotli",
    "UNCOMPRESSED": "none",
}
"""Parquet's name of a codec -> Arrow's."""


@dataclass(frozen=True, slots=True)
class WrittenBin:
    """A bin, and the file with its rows; None where all of them are deleted."""

    files: Bin
    new: NewFile | None


def write_bins(
    session: SparkSession, snapshot: Snapshot, bins: Sequence[Bin], *, attempt: str
) -> list[WrittenBin]:
    """Write one file for each bin, a task each. A second call writes other files.

    Raises `FileDamagedError` and `StorageUnavailableError`; what was written until then is never committed.
    """
    tasks = session.range(len(bins), numPartitions=len(bins))
    parts = [replace(snapshot, files=files) for files in bins]
    write = partial(_write_parts, parts=parts, attempt=attempt)
    columns = ", ".join(f"{name} STRING" for name in _LINE.names)
    written = []
    for files, line in zip(bins, tasks.mapInArrow(write, columns).collect(), strict=True):
        if line["damage"] is not None:
            raise FileDamagedError(table=snapshot.uri.rpartition("/")[2], what=line["damage"])
        if line["connection"] is not None:
            raise MissingConnectionError(connection=line["connection"], problem=line["storage"])
        if line["storage"] is not None:
            raise StorageUnavailableError(root=snapshot.uri, reason=line["storage"])
        document = json.loads(line["file"])
        written.append(WrittenBin(files, None if document is None else NewFile(**document)))
    return written


def _write_parts(
    numbers: Iterator[pa.RecordBatch], *, parts: Sequence[Snapshot], attempt: str
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column("id").to_pylist():
            yield pa.RecordBatch.from_pylist([_try_to_write(parts[number], attempt=attempt)], _LINE)


def _try_to_write(part: Snapshot, *, attempt: str) -> dict[str, str]:
    """Return the new file, or what was wrong: an exception would come out of Spark as another one."""
    try:
        new = write_files_as_one(part, attempt=attempt)
    except FileDamagedError as exc:
        return {"damage": exc.what}
    except MissingConnectionError as exc:
        return {"connection": exc.connection, "storage": f"in an executor, {exc.problem}"}
    except OSError as exc:
        return {"storage": str(exc)}
    return {"file": json.dumps(None if new is None else asdict(new))}


def write_files_as_one(part: Snapshot, *, attempt: str) -> NewFile | None:
    """Write the rows of all files of a snapshot into one new file; None where all rows are deleted."""
    statistics = FileStatistics(IndexedColumns.of_table(part.properties))
    new = OpenParquetFile.create(part.uri, nullable_schema(part), attempt=attempt, layout=_read_layout(part))
    try:
        for file in part.files:
            for rows in _read_checked(part, file):
                statistics.add(rows)
                for batch in rows.combine_chunks().to_batches():
                    new.add(batch)
        document = statistics.document()
        if not document["numRecords"]:
            new.discard()
            return None
        written = new.close()
    except BaseException:
        new.discard()
        raise
    return NewFile(written.name, written.size, written.modified, document)


def _read_checked(part: Snapshot, file: DataFile) -> Iterator[pa.Table]:
    """Yield the rows of a file. Raises `FileDamagedError` if they are not as many as the log says."""
    count, most = 0, _find_rows_per_group(part, file)
    for rows in batches_of(replace(part, files=(file,)), part.schema.names, most=most):
        count += len(rows)
        yield rows
    if file.rows is not None and count != file.rows - file.hidden_rows:
        what = f"{part.uri}/{file.path} has {count} rows, the log says {file.rows - file.hidden_rows}"
        raise FileDamagedError(table=part.uri.rpartition("/")[2], what=what)


def _read_layout(part: Snapshot) -> ParquetLayout:
    """Return the layout of the largest file with rows: writers of the table know what suits its columns."""
    for file in sorted(part.files, key=lambda file: file.size, reverse=True):
        metadata = _read_footer(part, file)
        if metadata.num_row_groups:
            group = metadata.row_group(0)
            columns = [group.column(number) for number in range(group.num_columns)]
            return ParquetLayout(
                dictionary=tuple(each.path_in_schema for each in columns if each.has_dictionary_page),
                statistics=tuple(each.path_in_schema for each in columns if each.is_stats_set),
                compression=_CODECS.get(columns[0].compression, COMPRESSION),
            )
    return ParquetLayout()


def _find_rows_per_group(part: Snapshot, file: DataFile) -> int:
    """Return how many rows of a file make a row group of the size that is wanted."""
    metadata = _read_footer(part, file)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    widest = max((group.total_byte_size / group.num_rows for group in groups if group.num_rows), default=0)
    return max(1, min(ROW_GROUP_ROWS, int(ROW_GROUP_BYTES / widest) if widest else ROW_GROUP_ROWS))


def _read_footer(part: Snapshot, file: DataFile) -> pq.FileMetaData:
    filesystem, folder = filesystem_of(part.uri)
    with naming_damage(part.uri, file), filesystem.open_input_file(f"{folder}/{file.path}") as stream:
        return pq.ParquetFile(stream).metadata

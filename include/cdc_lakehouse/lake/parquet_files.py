"""Parquet files that a worker writes into a table's folder; nobody sees them before they are committed.

Files of a task that failed, or that ran twice, stay where they are without a commit that names them,
until VACUUM finds them.
"""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem

from cdc_lakehouse.lake.filesystem import filesystem_of, sync_file

COMPRESSION = "snappy"
ROW_GROUP_ROWS = 128 * 1024
ROW_GROUP_BYTES = 32 * 2**20
"""Of Arrow memory that waits to be written, whichever bound comes first."""
FILE_BYTES = 256 * 2**20
"""On disk; a file is closed behind the row group that reaches it."""


@dataclass(frozen=True, slots=True)
class ParquetLayout:
    """Columns by the path of their leaf (`source.table`); the others get neither."""

    dictionary: tuple[str, ...] = ()
    """Few different values: texts and numbers that repeat."""
    statistics: tuple[str, ...] = ()
    """What readers skip row groups by."""
    compression: str = COMPRESSION
    """The codec of all columns, by Arrow's name."""


@dataclass(frozen=True, slots=True)
class ParquetFile:
    name: str
    """Below the table's folder."""
    size: int
    modified: int
    """Milliseconds since 1970 UTC, by the store's clock."""


@dataclass(slots=True)
class OpenParquetFile:
    """A file that is being written: rows wait until there are enough for a row group."""

    filesystem: FileSystem
    path: str
    name: str
    stream: pa.NativeFile
    writer: pq.ParquetWriter
    waiting: list[pa.RecordBatch] = field(default_factory=list)
    waiting_rows: int = 0
    waiting_bytes: int = 0

    @classmethod
    def create(
        cls, folder: str, schema: pa.Schema, *, attempt: str, layout: ParquetLayout
    ) -> OpenParquetFile:
        """Its name was never used before: who runs it again writes another file."""
        filesystem, root = filesystem_of(folder)
        name = f"{attempt}-{uuid.uuid4().hex}.{layout.compression}.parquet"
        path = f"{root}/{name}"
        stream = filesystem.open_output_stream(path)
        writer = pq.ParquetWriter(
            stream,
            schema,
            compression=layout.compression,
            use_dictionary=list(layout.dictionary) or False,
            write_statistics=list(layout.statistics) or False,
            # As Spark writes them, and half the size of the fixed bytes that Arrow would choose.
            store_decimal_as_integer=True,
            # Readers take types from the table; a second schema in every file only costs.
            store_schema=False,
            # A reader of a damaged page gets an error instead of values that were never written.
            write_page_checksum=True,
        )
        return cls(filesystem, path, name, stream, writer)

    def add(self, rows: pa.RecordBatch) -> None:
        self.waiting.append(rows)
        self.waiting_rows += rows.num_rows
        self.waiting_bytes += rows.nbytes
        if self.waiting_rows >= ROW_GROUP_ROWS or self.waiting_bytes >= ROW_GROUP_BYTES:
            self._write_waiting()

    @property
    def is_full(self) -> bool:
        return bool(self.stream.tell() >= FILE_BYTES)

    def close(self) -> ParquetFile:
        """Asks the store what it holds now: a size that is not there would be committed for good.

        On a disk the file is durable then: workers wait for that side by side, before the commit does.
        """
        self._write_waiting()
        self.writer.close()
        self.stream.close()
        sync_file(self.filesystem, self.path)
        found = self.filesystem.get_file_info(self.path)
        return ParquetFile(self.name, found.size, found.mtime_ns // 1_000_000)

    def discard(self) -> None:
        """Best effort: what is left lies there uncommitted, and the reason to give up is what counts."""
        with contextlib.suppress(Exception):
            self.writer.close()
        with contextlib.suppress(Exception):
            self.stream.close()
        with contextlib.suppress(Exception):
            self.filesystem.delete_file(self.path)

    def _write_waiting(self) -> None:
        if self.waiting:
            rows = pa.Table.from_batches(self.waiting, self.waiting[0].schema)
            self.writer.write_table(rows, row_group_size=self.waiting_rows)
        self.waiting, self.waiting_rows, self.waiting_bytes = [], 0, 0

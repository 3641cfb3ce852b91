"""The rows of a Delta table as Arrow, whole or in batches: deletions applied, old files in today's types."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow.fs import FileSystem

from cdc_lakehouse.errors import FileDamagedError
from cdc_lakehouse.lake.deletion_vectors import UnreadableVectorError, deleted_rows
from cdc_lakehouse.lake.filesystem import filesystem_of
from cdc_lakehouse.lake.snapshot import DataFile, Snapshot, newest_snapshot

_DAMAGE = re.compile(
    r"CRC checksum verification failed|Parquet magic bytes not found|Couldn't deserialize thrift"
    r"|Corrupt snappy compressed data"
)
"""What Arrow says of a file whose pages or whose footer were changed."""


def read_rows(uri: str) -> pa.Table | None:
    """All rows of the newest version, in memory; None while the table does not exist."""
    snapshot = newest_snapshot(uri)
    return None if snapshot is None else rows_of(snapshot)


def rows_of(snapshot: Snapshot) -> pa.Table:
    """Every type as the table declares it, every column nullable."""
    schema = nullable_schema(snapshot)
    filesystem, folder = filesystem_of(snapshot.uri)
    parts = []
    for file in snapshot.files:
        with naming_damage(snapshot.uri, file):
            parts.append(conform(_read_file(file, filesystem=filesystem, folder=folder), schema))
    return pa.concat_tables(parts) if parts else schema.empty_table()


def batches_of(snapshot: Snapshot, columns: Sequence[str], *, most: int) -> Iterator[pa.Table]:
    """The same rows, some columns of them, `most` at a time: memory does not grow with the table."""
    whole = nullable_schema(snapshot)
    schema = pa.schema([whole.field(name) for name in columns])
    filesystem, folder = filesystem_of(snapshot.uri)
    for file in snapshot.files:
        with naming_damage(snapshot.uri, file), filesystem.open_input_file(f"{folder}/{file.path}") as stream:
            kept = kept_rows(file, filesystem=filesystem, folder=folder)
            parquet = pq.ParquetFile(
                stream, coerce_int96_timestamp_unit="us", page_checksum_verification=True
            )
            present = [name for name in columns if name in parquet.schema_arrow.names]
            start = 0
            # Of a file that is older than all of these columns only the number of rows counts.
            for batch in parquet.iter_batches(batch_size=most, columns=present):
                table = pa.Table.from_batches([batch]) if present else pa.table({"": pa.nulls(len(batch))})
                until = start + len(batch)
                if kept is not None:
                    table = table.filter(pa.array(kept[start:until]))
                start = until
                yield conform(table, schema)


@contextmanager
def naming_damage(uri: str, file: DataFile) -> Iterator[None]:
    """Raise `FileDamagedError`, which names the file, where its bytes are not what was written."""
    try:
        yield
    except UnreadableVectorError as exc:
        what = f"its deletion vector cannot be read, {exc}: {uri}/{file.path}"
        raise FileDamagedError(table=uri.rpartition("/")[2], what=what) from exc
    except (OSError, pa.ArrowInvalid) as exc:
        damage = _DAMAGE.search(str(exc))
        if damage is None:
            raise
        table, what = uri.rpartition("/")[2], f"{damage.group()}: {uri}/{file.path}"
        raise FileDamagedError(table=table, what=what) from exc


def nullable_schema(snapshot: Snapshot) -> pa.Schema:
    return pa.schema([pa.field(field.name, _nullable(field.type)) for field in snapshot.schema])


def _read_file(file: DataFile, *, filesystem: FileSystem, folder: str) -> pa.Table:
    table = pq.read_table(
        f"{folder}/{file.path}",
        filesystem=filesystem,
        partitioning=None,
        coerce_int96_timestamp_unit="us",
        page_checksum_verification=True,
    )
    kept = kept_rows(file, filesystem=filesystem, folder=folder)
    return table if kept is None else table.filter(pa.array(kept))


def kept_rows(file: DataFile, *, filesystem: FileSystem, folder: str) -> np.ndarray | None:
    """Return which rows of a file are left; None for all of them."""
    if file.deleted is None:
        return None
    count = pq.read_metadata(f"{folder}/{file.path}", filesystem=filesystem).num_rows
    kept = np.ones(count, dtype=bool)
    kept[read_deleted(file, filesystem=filesystem, folder=folder)] = False
    return kept


def read_deleted(file: DataFile, *, filesystem: FileSystem, folder: str) -> NDArray[np.int64]:
    """Return the numbers of the rows of a file that are deleted, ascending."""
    if file.deleted is None:
        return np.zeros(0, np.int64)

    def read(path: str) -> bytes:
        with filesystem.open_input_stream(f"{folder}/{path}") as stream:
            return bytes(stream.read())

    return deleted_rows(file.deleted, read=read).astype(np.int64)


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = []
    for field in schema:
        if field.name in table.column_names:
            chunks = [_as_type(chunk, field.type) for chunk in table[field.name].chunks]
            columns.append(pa.chunked_array(chunks, type=field.type))
        else:  # the file is older than the column
            columns.append(pa.chunked_array([pa.nulls(table.num_rows, field.type)]))
    return pa.table(columns, schema=schema)


def _as_type(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Widened where the file is older; a field that a struct did not have yet is NULL."""
    if values.type == wanted:
        return values
    if pa.types.is_struct(wanted):
        known = {values.type.field(index).name for index in range(values.type.num_fields)}
        children = [
            _as_type(pc.struct_field(values, field.name), field.type)
            if field.name in known
            else pa.nulls(len(values), field.type)
            for field in wanted
        ]
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=values.is_null())
    if pa.types.is_list(wanted):
        offsets = pc.fill_null(values.offsets, 0) if values.null_count else values.offsets
        return pa.ListArray.from_arrays(
            offsets, _as_type(values.values, wanted.value_type), type=wanted, mask=values.is_null()
        )
    return values.cast(wanted)


def _nullable(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(field.name, _nullable(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(pa.field("element", _nullable(type_.value_type)))
    return type_

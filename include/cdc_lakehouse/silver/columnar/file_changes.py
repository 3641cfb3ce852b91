"""Data files with new rows, and deletion vectors for rows that go: what one commit of a table consists of.

Nobody sees either before it is committed. What is not committed stays until VACUUM finds it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from cdc_lakehouse.lake.deletion_vectors import Rows, write_vectors
from cdc_lakehouse.lake.delta_transaction import DataFile, removal_of
from cdc_lakehouse.lake.file_statistics import statistics_of, with_wide_bounds
from cdc_lakehouse.lake.filesystem import filesystem_of, sync_file
from cdc_lakehouse.lake.parquet_files import ROW_GROUP_ROWS, OpenParquetFile, ParquetLayout
from cdc_lakehouse.lake.rows import read_deleted
from cdc_lakehouse.silver.columnar.stored_rows import FoundRows

_ROWS_PER_FILE = 4_000_000


def write_rows(uri: str, rows: pa.Table, *, keys: Sequence[str], attempt: str) -> list[DataFile]:
    """Write rows into files of the table at `uri`, sorted by key. A second call writes other files."""
    if not len(rows):
        return []
    rows = rows.sort_by([(name, "ascending") for name in keys])
    return [
        _write_file(uri, rows.slice(start, _ROWS_PER_FILE), keys=keys, attempt=attempt)
        for start in range(0, len(rows), _ROWS_PER_FILE)
    ]


def delete_rows(uri: str, found: Sequence[FoundRows]) -> list[dict[str, Any]]:
    """Write deletion vectors for the found rows and return the actions after which the table lacks them.

    A file none of whose rows is left goes as a whole. A second call writes other vectors.
    """
    deleted = [_join_deleted(uri, rows) for rows in found]
    is_left = [len(gone) < rows.count for gone, rows in zip(deleted, found, strict=True)]
    vectors = iter(
        write_vectors(
            [gone for gone, left in zip(deleted, is_left, strict=True) if left],
            write=lambda name, data: _write_durably(f"{uri}/{name}", data),
        )
    )
    now, actions = time.time_ns() // 1_000_000, []
    for rows, left in zip(found, is_left, strict=True):
        add = rows.file.action
        actions.append({"remove": removal_of(add, at=now)})
        if left:
            known = json.loads(add["stats"]) if add.get("stats") else {}
            statistics = with_wide_bounds({"numRecords": rows.count, **known})
            changed = {"deletionVector": next(vectors).to_action(), "stats": json.dumps(statistics)}
            actions.append({"add": {**add, **changed, "dataChange": True}})
    return actions


def _write_file(uri: str, rows: pa.Table, *, keys: Sequence[str], attempt: str) -> DataFile:
    leaves = tuple(_list_leaves(rows.schema))
    layout = ParquetLayout(dictionary=tuple(leaf for leaf in leaves if leaf not in keys), statistics=leaves)
    file = OpenParquetFile.create(uri, rows.schema, attempt=attempt, layout=layout)
    try:
        for batch in rows.to_batches(max_chunksize=ROW_GROUP_ROWS):
            file.add(batch)
        written = file.close()
    except BaseException:
        file.discard()
        raise
    return DataFile(written.name, written.size, written.modified, statistics_of(rows))


def _list_leaves(schema: pa.Schema) -> Iterator[str]:
    for field in schema:
        yield from _list_leaves_of(field.name, field.type)


def _list_leaves_of(path: str, type_: pa.DataType) -> Iterator[str]:
    if pa.types.is_struct(type_):
        for field in type_:
            yield from _list_leaves_of(f"{path}.{field.name}", field.type)
    elif pa.types.is_list(type_):
        yield from _list_leaves_of(f"{path}.list.element", type_.value_type)
    elif pa.types.is_map(type_):
        yield from _list_leaves_of(f"{path}.key_value.key", type_.key_type)
        yield from _list_leaves_of(f"{path}.key_value.value", type_.item_type)
    else:
        yield path


def _join_deleted(uri: str, found: FoundRows) -> Rows:
    """Return the rows of a file that are gone with those that were before."""
    filesystem, folder = filesystem_of(uri)
    deleted = read_deleted(found.file, filesystem=filesystem, folder=folder)
    return np.union1d(deleted, found.rows).astype(np.uint64)


def _write_durably(uri: str, data: bytes) -> None:
    filesystem, path = filesystem_of(uri)
    with filesystem.open_output_stream(path) as stream:
        stream.write(data)
    sync_file(filesystem, path)

"""Records of a bronze table that could not be decoded and still wait for it, found without a JVM.

The statistics of each file say how many it has, so only files with such records are opened.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_lakehouse.errors import StorageUnavailableError
from cdc_lakehouse.lake.filesystem import filesystem_of
from cdc_lakehouse.lake.snapshot import DataFile, newest_snapshot

_ERROR = "decode_error"
CASE_COLUMNS = (
    *("topic", "partition", "offset", "kafka_timestamp", "key_schema_id", "value_schema_id"),
    *(_ERROR, "ingested_at"),
)


def open_cases(uri: str) -> int:
    """How many records wait; 0 while the table does not exist."""
    total = 0
    for file in _files(uri):
        told = _told(file)
        total += len(_cases_of(uri, file, columns=[_ERROR])) if told is None else told
    return total


def cases(uri: str) -> pa.Table | None:
    """Where they are, what is wrong with each and which schemas it names; never a value. None without any."""
    found = [_cases_of(uri, each, columns=list(CASE_COLUMNS)) for each in _files(uri) if _told(each) != 0]
    whole = pa.concat_tables(found, promote_options="permissive") if found else None
    return whole if whole is not None and len(whole) else None


def _files(uri: str) -> tuple[DataFile, ...]:
    snapshot = newest_snapshot(uri)
    return () if snapshot is None else snapshot.files


def _told(file: DataFile) -> int | None:
    """None where the log does not say: files of release 0.1.0, and those that replaced them."""
    sound = file.nulls.get(_ERROR, {}).get("code")
    return None if sound is None or file.rows is None else file.rows - sound


def _cases_of(uri: str, file: DataFile, *, columns: list[str]) -> pa.Table:
    filesystem, root = filesystem_of(uri)
    try:
        with filesystem.open_input_file(f"{root}/{file.path}") as stream:
            rows = pq.read_table(stream, columns=columns)
    except OSError as exc:
        raise StorageUnavailableError(root=f"{uri}/{file.path}", reason=str(exc)) from exc
    return rows.filter(pc.is_valid(rows[_ERROR]))

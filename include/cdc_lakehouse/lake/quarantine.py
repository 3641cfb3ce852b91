"""Records of a bronze table that could not be decoded: those that still wait, and those that were closed.

Found without a JVM. The statistics of each file say how many it has, so only files with such records are
opened; and none of them is opened to count, unless somebody has closed a case of this table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_lakehouse.errors import StorageUnavailableError
from cdc_lakehouse.lake.filesystem import filesystem_of
from cdc_lakehouse.lake.rows import naming_damage
from cdc_lakehouse.lake.snapshot import DataFile, newest_snapshot

ERROR = "decode_error"
CLOSED = "closed"
"""Field of it: the attempt that closed the case. A table without closed cases has no such field."""
_INSTANT = pa.timestamp("us", tz="UTC")
_PLACE = ("topic", "partition", "offset", "topic_id")
_COMMITTED = "source.ts"
CASE_TIMES = ("kafka_timestamp", "committed_at")
"""When a record came to Kafka, and when its change was committed, where that much of it is known."""
CASE_COLUMNS = (
    *(*_PLACE, "kafka_timestamp", "key_schema_id", "value_schema_id"),
    *(ERROR, "ingested_at"),
)
RECORD_COLUMNS = ("raw_key", "raw_value", *_PLACE, "headers")
"""What bronze keeps of a record that could not be decoded."""
_CASE = pa.struct([("code", pa.string()), ("detail", pa.string()), (CLOSED, pa.string())])


@dataclass(frozen=True, slots=True)
class Case:
    """One undecodable record."""

    topic: str
    partition: int
    offset: int
    code: str
    topic_id: str | None = None
    """None for rows of release 0.1.0, which knew one incarnation of a topic."""
    closed: str | None = None
    """The attempt that closed it."""


def name_of_cases(code: str, cases: Iterable[Case]) -> str:
    """Return `bad_frame:2records@5f1c09ae77d2`: a code, and a digest of which records have it.

    A person decides on exactly these. One record more or less has another name.
    """
    places = sorted(f"{each.topic}@{each.topic_id or ''}/{each.partition}@{each.offset}" for each in cases)
    digest = sha256("\n".join(places).encode()).hexdigest()
    return f"{code}:{len(places)}records@{digest[:12]}"


def open_cases(uri: str) -> int:
    """How many records wait; 0 while the table does not exist."""
    snapshot = newest_snapshot(uri)
    if snapshot is None:
        return 0
    some_are_closed = _has_closed(snapshot.schema.field(ERROR).type)
    total = 0
    for file in snapshot.files:
        told = _told(file)
        if told is None or (told and some_are_closed):
            told = len(_cases_of(uri, file, columns=[ERROR], closed=False))
        total += told
    return total


def cases(uri: str, *, closed: bool = False) -> pa.Table | None:
    """Where they are, what is wrong with each and which schemas it names; never a value. None without any.

    Those that wait, or those that were `closed`.
    """
    return _read_cases(uri, columns=CASE_COLUMNS, closed=closed)


def times_of_cases(uri: str) -> pa.Table | None:
    """Return `CASE_TIMES` of those that wait; None without any."""
    rows = _read_cases(uri, columns=(CASE_TIMES[0], _COMMITTED, ERROR), closed=False)
    return None if rows is None else rows.select(CASE_TIMES)


def waiting_records(uri: str) -> pa.Table | None:
    """Return those that wait as Kafka gave them, beside `CASE_TIMES`; None without any."""
    rows = _read_cases(uri, columns=(*RECORD_COLUMNS, CASE_TIMES[0], _COMMITTED, ERROR), closed=False)
    return None if rows is None else rows.select([*RECORD_COLUMNS, *CASE_TIMES])


def _read_cases(uri: str, *, columns: Iterable[str], closed: bool) -> pa.Table | None:
    snapshot = newest_snapshot(uri)
    files = () if snapshot is None else snapshot.files
    found = [_cases_of(uri, each, columns=list(columns), closed=closed) for each in files if _told(each) != 0]
    whole = pa.concat_tables(found, promote_options="permissive") if found else None
    return whole if whole is not None and len(whole) else None


def listed_cases(uri: str) -> list[Case]:
    """Return every undecodable record of the table, those whose cases were closed too."""
    found = [rows for closed in (False, True) if (rows := cases(uri, closed=closed)) is not None]
    return [
        Case(
            topic=row["topic"],
            partition=row["partition"],
            offset=row["offset"],
            topic_id=row["topic_id"],
            code=row[ERROR]["code"],
            closed=row[ERROR][CLOSED],
        )
        for rows in found
        for row in rows.select([*_PLACE, ERROR]).to_pylist()
    ]


def _told(file: DataFile) -> int | None:
    """Closed ones among them. None where the log does not say: files of 0.1.0, and what replaced them."""
    sound = file.nulls.get(ERROR, {}).get("code")
    return None if sound is None or file.rows is None else file.rows - sound


def _cases_of(uri: str, file: DataFile, *, columns: list[str], closed: bool) -> pa.Table:
    filesystem, root = filesystem_of(uri)
    try:
        with naming_damage(uri, file), filesystem.open_input_file(f"{root}/{file.path}") as stream:
            parquet = pq.ParquetFile(
                stream, page_checksum_verification=True, coerce_int96_timestamp_unit=_INSTANT.unit
            )
            own = [name for name in columns if name.partition(".")[0] in parquet.schema_arrow.names]
            rows = parquet.read(columns=own)
    except OSError as exc:
        raise StorageUnavailableError(root=f"{uri}/{file.path}", reason=str(exc)) from exc
    if _COMMITTED in own:
        committed = pc.struct_field(rows["source"].combine_chunks(), "ts")
        rows = rows.drop_columns(["source"]).append_column(CASE_TIMES[1], committed)
    # Spark, which writes the files of closed cases, has a type of its own for timestamps.
    instants = [pa.field(f.name, _INSTANT) if pa.types.is_timestamp(f.type) else f for f in rows.schema]
    rows = rows.cast(pa.schema(instants))
    if "topic_id" in columns and "topic_id" not in own:  # a file of release 0.1.0
        rows = rows.append_column("topic_id", pa.nulls(len(rows), pa.string()))
    rows = rows.filter(pc.is_valid(rows[ERROR]))
    faults = rows[ERROR].combine_chunks()
    by = pc.struct_field(faults, CLOSED) if _has_closed(faults.type) else pa.nulls(len(rows), pa.string())
    told = [pc.struct_field(faults, "code"), pc.struct_field(faults, "detail"), by]
    place = rows.schema.get_field_index(ERROR)
    rows = rows.set_column(place, ERROR, pa.StructArray.from_arrays(told, fields=list(_CASE)))
    return rows.filter(pc.is_valid(by) if closed else pc.is_null(by))


def _has_closed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind) and kind.get_field_index(CLOSED) >= 0)

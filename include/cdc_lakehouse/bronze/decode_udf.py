"""The Avro UDF: Kafka rows in, Parquet files of bronze rows out; Spark sees one line per file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.bronze.batch_size import limit
from cdc_lakehouse.bronze.tally import Tally
from cdc_lakehouse.bronze.worker_failures import telling_storage
from cdc_lakehouse.bronze.worker_garbage import spare_loaded_modules
from cdc_lakehouse.bronze.worker_versions import installed, refuse_other_versions
from cdc_lakehouse.bronze.written_file import WrittenFile
from cdc_lakehouse.debezium.bronze import bronze_schema
from cdc_lakehouse.debezium.decode import decode_in_parts
from cdc_lakehouse.debezium.plans import DecodePlans
from cdc_lakehouse.lake.bronze_schema import ATTEMPT, INGESTED_AT
from cdc_lakehouse.lake.parquet_files import OpenParquetFile, ParquetLayout

_KAFKA_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
_LINE = "file"
_SOURCE_NAMES = ("connector", "version", "name", "snapshot", "db", "schema", "table", "file")
LAYOUT = ParquetLayout(
    dictionary=(
        *("topic", "topic_id", "partition", "key_schema_id", "value_schema_id", "op"),
        *("ingested_at", "attempt"),
        *(f"position.{name}" for name in ("phase", "streamed", "kind")),
        *(f"source.{name}" for name in _SOURCE_NAMES),
    ),
    statistics=("topic", "partition", "offset", "kafka_timestamp", "decode_error.code"),
)
Rows = Iterator[tuple[pa.RecordBatch, float]]
"""Bronze rows, and the seconds that decoding took for them."""


def write_files(
    records: DataFrame, plans: DecodePlans, *, folder: str, attempt: str, wide: bool = False
) -> list[WrittenFile]:
    """Files with the bronze rows of `records`, exactly one each, in the table at `folder`.

    They are not part of the table until somebody commits them. Spark hands back the lines of tasks that
    succeeded, each once, however often it tried or doubled them; a second call writes other files.
    Batches of `wide` records are limited by bytes.
    """
    shared = records.sparkSession.sparkContext.broadcast(plans)
    write = _writer(shared, stamp_of(attempt), folder=folder, attempt=attempt)
    lines = for_python(records, wide=wide).mapInArrow(write, f"{_LINE} STRING").collect()
    return [WrittenFile.from_json(line[_LINE]) for line in lines]


def for_python(records: DataFrame, *, wide: bool = False, more: tuple[str, ...] = ()) -> DataFrame:
    """What the decoder needs of Kafka's rows, and `more`, in the shape cheapest to hand over."""
    limit(records.sparkSession, by_bytes=wide)
    # An empty list for no headers: on its way to Python Spark walks over all null ones before it, for
    # every row again, which costs more than everything else.
    headers = F.coalesce("headers", F.array().cast(records.schema["headers"].dataType))
    return records.select(*_KAFKA_COLUMNS, *more).withColumn("headers", headers)


def stamp_of(attempt: str) -> dict[str, pa.Scalar]:
    """What every row of a batch has beside what was decoded."""
    now = pa.scalar(datetime.now(UTC), pa.timestamp("us", tz="UTC"))
    return {INGESTED_AT.name: now, ATTEMPT.name: pa.scalar(attempt)}


def _writer(
    shared: Broadcast[DecodePlans], stamp: Mapping[str, pa.Scalar], *, folder: str, attempt: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    driver = installed()

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_loaded_modules()
        refuse_other_versions(driver, worker=installed())
        rows = decoded(batches, shared.value, stamp=stamp)
        for line in files_of(rows, file_schema(shared.value, stamp), folder=folder, attempt=attempt):
            yield pa.RecordBatch.from_pydict({_LINE: [line.to_json()]})

    return write


def file_schema(plans: DecodePlans, stamp: Mapping[str, pa.Scalar]) -> pa.Schema:
    schema = bronze_schema(plans.columns)
    for name, value in stamp.items():
        schema = schema.append(pa.field(name, value.type))
    return schema


def decoded(batches: Iterator[pa.RecordBatch], plans: DecodePlans, *, stamp: Mapping[str, pa.Scalar]) -> Rows:
    for batch in batches:
        for _records, rows, seconds in decoded_parts(batch, plans, stamp=stamp):
            yield rows, seconds


def decoded_parts(
    batch: pa.RecordBatch, plans: DecodePlans, *, stamp: Mapping[str, pa.Scalar]
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch, float]]:
    """Yield records, their bronze rows and the seconds that decoding took, for each part of `batch`."""
    parts = decode_or_tell(batch, plans)
    started = time.perf_counter()
    for records, rows in parts:
        seconds = time.perf_counter() - started
        if rows.num_rows != records.num_rows:
            raise ValueError(f"{records.num_rows} records became {rows.num_rows} rows")
        for name, value in stamp.items():
            rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
        yield records, rows, seconds
        started = time.perf_counter()


def files_of(rows: Rows, schema: pa.Schema, *, folder: str, attempt: str) -> Iterator[WrittenFile]:
    """One file, and the next one when it is full; none without rows. A failure leaves nothing behind."""
    file, tally = None, Tally()
    try:
        for batch, seconds in rows:
            if not batch.num_rows:
                continue
            tally.add(batch, decode_seconds=seconds)
            with telling_storage():
                file = file or OpenParquetFile.create(folder, schema, attempt=attempt, layout=LAYOUT)
                file.add(batch)
                whole = file.close() if file.is_full else None
            if whole is not None:
                file = None
                yield tally.written_file(whole)
                tally = Tally()
        if file is not None:
            with telling_storage():
                whole = file.close()
            file = None
            yield tally.written_file(whole)
    except BaseException:
        if file is not None:
            file.discard()
        raise


def decode_or_tell(
    batch: pa.RecordBatch, plans: DecodePlans
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Yield from `decode_in_parts`; the traceback of an exception names the coordinates of the records.

    A log may not say more of them.
    """
    try:
        yield from decode_in_parts(batch, plans)
    except Exception as exc:
        rows = batch.select(["topic", "partition", "offset"]).to_pylist()
        if rows:
            first, last = ("{topic}/{partition}@{offset}".format_map(row) for row in (rows[0], rows[-1]))
            exc.add_note(f"while decoding {first} to {last}")
        raise

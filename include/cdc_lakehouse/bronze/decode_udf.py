"""The Avro UDF: Kafka rows in, bronze rows out, in one pass over Arrow batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

import pyarrow as pa
from pyspark import Accumulator, Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from cdc_lakehouse.bronze.batch_size import limit
from cdc_lakehouse.bronze.worker_versions import installed, refuse_other_versions
from cdc_lakehouse.debezium.bronze import POSITION_FIELDS
from cdc_lakehouse.debezium.decode import decode
from cdc_lakehouse.debezium.plans import DecodePlans
from cdc_lakehouse.lake.bronze_schema import ATTEMPT, INGESTED_AT, table_schema

_KAFKA_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")


def decoded(
    records: DataFrame,
    plans: DecodePlans,
    *,
    attempt: str,
    decode_seconds: Accumulator[float],
    wide: bool = False,
) -> DataFrame:
    """Bronze rows of `records`, exactly one each. Batches of `wide` records are limited by bytes.

    `decode_seconds` grows by the time that tasks which succeed spend in `decode`. Spark adds a task once
    however often it was tried or doubled; a batch that is run again counts again.
    """
    limit(records.sparkSession, by_bytes=wide)
    shared = records.sparkSession.sparkContext.broadcast(plans)
    # An empty list for no headers: on its way to Python Spark walks over all null ones before it, for
    # every row again, which costs more than everything else.
    headers = F.coalesce("headers", F.array().cast(records.schema["headers"].dataType))
    told = records.select(*_KAFKA_COLUMNS).withColumn("headers", headers)
    stamp = {INGESTED_AT.name: _now(), ATTEMPT.name: pa.scalar(attempt)}
    return told.mapInArrow(_decoder(shared, stamp, decode_seconds), _given_out(table_schema(plans.columns)))


_ALWAYS_THERE = frozenset(
    {"topic", "partition", "offset", "kafka_timestamp", *POSITION_FIELDS, INGESTED_AT.name, ATTEMPT.name}
)


def _given_out(schema: StructType) -> StructType:
    """The table's schema, where Spark need not ask of every value whether it is null."""
    fields = [
        StructField(field.name, _given_out(field.dataType))
        if field.name == "position"
        else StructField(field.name, field.dataType, field.name not in _ALWAYS_THERE)
        for field in schema
    ]
    return StructType(fields)


def _now() -> pa.Scalar:
    return pa.scalar(datetime.now(UTC), pa.timestamp("us", tz="UTC"))


def _decoder(
    shared: Broadcast[DecodePlans], stamp: Mapping[str, pa.Scalar], decode_seconds: Accumulator[float]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    driver = installed()

    def decode_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        refuse_other_versions(driver, worker=installed())
        for batch in batches:
            plans, started = shared.value, time.perf_counter()
            rows = decode_or_tell(batch, plans)
            decode_seconds.add(time.perf_counter() - started)
            if rows.num_rows != batch.num_rows:
                raise ValueError(f"{batch.num_rows} records became {rows.num_rows} rows")
            # Here and not in Spark, which would copy every row once more for two columns.
            for name, value in stamp.items():
                rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
            yield rows

    return decode_batches


def decode_or_tell(batch: pa.RecordBatch, plans: DecodePlans) -> pa.RecordBatch:
    """`decode`; the traceback of whatever it raises names the records, which is all that a log may say."""
    try:
        return decode(batch, plans)
    except Exception as exc:
        rows = batch.select(["topic", "partition", "offset"]).to_pylist()
        if rows:
            first, last = ("{topic}/{partition}@{offset}".format_map(row) for row in (rows[0], rows[-1]))
            exc.add_note(f"while decoding {first} to {last}")
        raise

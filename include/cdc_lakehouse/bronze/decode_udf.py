"""The Avro UDF: Kafka rows in, bronze rows out, in one pass over Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.bronze.worker_versions import installed, refuse_other_versions
from cdc_lakehouse.debezium.decode import decode
from cdc_lakehouse.debezium.plans import DecodePlans
from cdc_lakehouse.lake.bronze_schema import ATTEMPT, INGESTED_AT, decoded_schema

_KAFKA_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")


def decoded(records: DataFrame, plans: DecodePlans, *, attempt: str) -> DataFrame:
    """Bronze rows of `records`, exactly one each."""
    shared = records.sparkSession.sparkContext.broadcast(plans)
    rows = records.select(*_KAFKA_COLUMNS).mapInArrow(_decoder(shared), decoded_schema(plans.columns))
    return rows.select(
        "*",
        F.current_timestamp().alias(INGESTED_AT.name),
        F.lit(attempt).alias(ATTEMPT.name),
    )


def _decoder(
    shared: Broadcast[DecodePlans],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    driver = installed()

    def decode_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        refuse_other_versions(driver, worker=installed())
        for batch in batches:
            rows = decode(batch, shared.value)
            if rows.num_rows != batch.num_rows:
                raise ValueError(f"{batch.num_rows} records became {rows.num_rows} rows")
            yield rows

    return decode_batches

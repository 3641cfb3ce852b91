"""What stating the ledger costs a small batch, against the same batch appended by Spark without one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.spark_variants import VARIANTS as DECODERS  # type: ignore[import-not-found]
from bench.streams import Stream, kafka_rows, plans_of  # type: ignore[import-not-found]
from cdc_lakehouse.bronze.decode_udf import write_files
from cdc_lakehouse.bronze.write import BRONZE_PROPERTIES, append
from cdc_lakehouse.lake.bronze_schema import table_schema
from cdc_lakehouse.lake.ledger import Kind, Ledger
from cdc_lakehouse.lake.spans import spans_of
from cdc_lakehouse.lake.tables import create_if_missing

ROWS = 1_000
_SOURCE = "shop.public.orders@topic"
WAYS = ("ours", "plain")


def batch_seconds(
    session: SparkSession, stream: Stream, how: str, *, count: int, folder: Path
) -> list[float]:
    """Decode and commit `count` batches of a thousand records each, one after the other."""
    batches = [
        session.createDataFrame(kafka_rows(stream.records(ROWS), first_offset=number * ROWS)).coalesce(1)
        for number in range(count)
    ]
    uri = folder.as_uri()
    schema = table_schema(plans_of(stream).columns)
    create_if_missing(session, uri, schema=schema, properties=BRONZE_PROPERTIES)
    return list(_with_ledger(stream, batches, uri) if how == "ours" else _plain(stream, batches, uri))


def _plain(stream: Stream, batches: list[DataFrame], uri: str) -> Iterator[float]:
    for batch in batches:
        began = time.perf_counter()
        DECODERS["ours"].plan(stream, batch).write.format("delta").mode("append").save(uri)
        yield time.perf_counter() - began


def _with_ledger(stream: Stream, batches: list[DataFrame], uri: str) -> Iterator[float]:
    ledger, known, plans = Ledger(Kind.BRONZE, "bench", "orders", "cluster"), None, plans_of(stream)
    for number, batch in enumerate(batches):
        began = time.perf_counter()
        added = {_SOURCE: {0: (number * ROWS, (number + 1) * ROWS)}}
        files = write_files(batch, plans, folder=uri, attempt="bench")
        after = ledger.advanced(added, attempt="bench", seen_through=None)
        commit = append(
            batch.sparkSession,
            files,
            uri=uri,
            within=spans_of(added),
            before=ledger,
            after=after,
            schema=table_schema(plans.columns),
            known=known,
        )
        ledger, known = commit.ledger, commit.version
        yield time.perf_counter() - began

"""Batches of wide records do not end the JVM (decision 0011)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chain import Chain, kafka_rows  # type: ignore[import-not-found]
from orders import OLD, ORDERS, know, order  # type: ignore[import-not-found]
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.bronze.batch_size import limit, outgrew
from cdc_lakehouse.bronze.decode_udf import write_files
from cdc_lakehouse.debezium.columns import columns_of
from cdc_lakehouse.debezium.plans import DecodePlans


@pytest.fixture
def chain(engine, tmp_path: Path) -> Chain:
    found = Chain(engine, root=tmp_path.as_uri())
    know(found)
    return found


def test_a_batch_that_outgrows_memory_fails_cleanly_and_fits_in_smaller_ones(chain, tmp_path):
    """1,500 records of 400 KB: more than the direct memory that batches have."""
    session = chain.engine.isolated()
    one = kafka_rows(session, [order(2, 3)]).withColumn("key", F.lit(None).cast("binary"))
    wide = (
        one.withColumn("value", F.encode(F.repeat(F.lit("x"), 400_000), "utf-8"))
        .crossJoin(session.range(1_500, numPartitions=1))
        .withColumn("offset", F.col("id"))
    )
    columns = columns_of(*OLD.schemas.values(), table=ORDERS.name)
    plans = DecodePlans(table=ORDERS.name, columns=columns, schemas={})

    def codes(*, small: bool) -> list[dict[str, int]]:
        files = write_files(wide, plans, folder=tmp_path.as_uri(), attempt="a", wide=small)
        return [dict(file.errors_by_code) for file in files]

    with pytest.raises(Exception) as caught:  # noqa: PT011 - what Spark makes of it is what is tested
        codes(small=False)
    assert outgrew(str(caught.value))
    assert list(tmp_path.iterdir()) == []
    assert codes(small=True) == [{"bad_frame": 1_500}]


def test_wide_records_make_the_run_limit_batches_by_bytes(chain, monkeypatch):
    seen: list[str | None] = []

    def full_at_first(rows: DataFrame, *args: Any, **options: Any) -> Any:
        limit(rows.sparkSession, by_bytes=options["wide"])
        seen.append(rows.sparkSession.conf.get("spark.sql.execution.arrow.maxBytesPerBatch"))
        if len(seen) == 1:
            raise RuntimeError("org.apache.arrow.memory.OutOfMemoryException: Failure allocating buffer.")
        return write_files(rows, *args, **options)

    monkeypatch.setattr("cdc_lakehouse.bronze.ingest.write_files", full_at_first)
    result = chain.ingest(ORDERS, [order(2, 3)])

    assert result.counts["appended"] == 1
    assert seen == ["2147483647", "32m"]

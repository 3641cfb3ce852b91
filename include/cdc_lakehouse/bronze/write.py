"""Append a batch to bronze: rows and ledger in one commit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.lake.coordinates import in_ranges
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.transaction import commit, writer_options

BRONZE_PROPERTIES = {
    "delta.enableTypeWidening": "true",
    # Bronze is read by coordinate and by time; statistics on payloads would only cost.
    "delta.dataSkippingStatsColumns": "topic,partition,offset,kafka_timestamp",
}


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What one commit added, as the table itself tells it afterwards."""

    ledger: Ledger
    version: int
    appended: int
    errors_by_code: dict[str, int]
    out_of_range: int
    """Rows in which a value became NULL because its column cannot hold it."""
    seen_through: datetime | None


def append(batch: DataFrame, ledger: Ledger, *, uri: str) -> CommitResult:
    """Write `batch` and state `ledger` in the same commit.

    A second call with the same step writes nothing and raises `SupersededError`.
    """

    def write() -> None:
        (
            batch.write.format("delta")
            .mode("append")
            .option("mergeSchema", "true")
            .options(**writer_options(ledger))
            .save(uri)
        )

    state = commit(write, uri=uri, ledger=ledger)
    return _read_back(batch.sparkSession, ledger, uri=uri, version=state.version)


def _read_back(session: SparkSession, ledger: Ledger, *, uri: str, version: int) -> CommitResult:
    """A DataFrame of a batch may be used once only, so the rows are counted where they were written."""
    rows = session.read.format("delta").option("versionAsOf", version).load(uri)
    counted = (
        rows.where(in_ranges(ledger.added))
        .groupBy(F.col("decode_error.code").alias("code"))
        .agg(
            F.count(F.lit(1)).alias("rows"),
            F.count_if(F.col("out_of_range").isNotNull()).alias("out of range"),
            F.max(F.unix_micros("source.ts")).alias("newest"),
        )
        .collect()
    )
    newest = max((row["newest"] for row in counted if row["newest"] is not None), default=None)
    return CommitResult(
        ledger=ledger,
        version=version,
        appended=sum(row["rows"] for row in counted),
        out_of_range=sum(row["out of range"] for row in counted),
        errors_by_code={row["code"]: row["rows"] for row in counted if row["code"] is not None},
        seen_through=None if newest is None else datetime.fromtimestamp(newest / 1e6, UTC),
    )

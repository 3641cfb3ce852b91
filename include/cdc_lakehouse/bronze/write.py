"""Append a batch to bronze: rows and ledger in one commit."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from cdc_lakehouse.bronze.read_back import Added, read_back
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.transaction import commit, writer_options

BRONZE_PROPERTIES = {
    "delta.enableTypeWidening": "true",
    # Bronze is read by coordinate and by time; statistics on payloads would only cost.
    "delta.dataSkippingStatsColumns": "topic,partition,offset,kafka_timestamp",
}


@dataclass(frozen=True, slots=True)
class CommitResult:
    ledger: Ledger
    version: int
    added: Added


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
    added = read_back(batch.sparkSession, ledger.added, uri=uri, version=state.version)
    return CommitResult(ledger=ledger, version=state.version, added=added)

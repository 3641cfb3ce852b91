"""Commit a batch to bronze: its files and the ledger in one commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from cdc_lakehouse.bronze.added import Added
from cdc_lakehouse.bronze.coverage import refuse_misfit
from cdc_lakehouse.bronze.written_file import WrittenFile
from cdc_lakehouse.lake.delta_transaction import DataFile
from cdc_lakehouse.lake.file_commit import commit_files
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.spans import Spans

BRONZE_PROPERTIES = {
    "delta.enableTypeWidening": "true",
    # Bronze is read by coordinate and by time, and its undecodable records are counted; statistics on
    # payloads would only cost.
    "delta.dataSkippingStatsColumns": "topic,partition,offset,kafka_timestamp,decode_error.code",
}


@dataclass(frozen=True, slots=True)
class CommitResult:
    ledger: Ledger
    version: int
    added: Added


def append(
    session: SparkSession,
    files: Sequence[WrittenFile],
    *,
    uri: str,
    within: Spans,
    before: Ledger,
    after: Ledger,
    schema: StructType,
    known: int | None,
) -> CommitResult:
    """Make `files` part of the table and state `after`, in the same commit; their rows lie `within` that.

    A second call with the same step commits nothing and raises `SupersededError`.
    """
    refuse_misfit(files, within, table=after.table)
    data = [DataFile(file.name, file.size, file.modified, file.statistics()) for file in files]
    version = commit_files(session, uri, data, before=before, after=after, schema=schema, known=known)
    return CommitResult(ledger=after, version=version, added=Added.of_files(files))

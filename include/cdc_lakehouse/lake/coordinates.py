"""Rows of a bronze table by their coordinates, and what the ledger knows about a coordinate."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.lake.ledger import Ledger, Ranges, first_incarnations, incarnation_of, topic_of

TOPIC_ID = "topic_id"


def in_ranges(ranges: Ranges, *, unnamed: Collection[str] | None = None) -> Column:
    """Rows whose coordinate lies in `ranges`: literals, so that Delta skips the other files.

    Rows of release 0.1.0 have no `topic_id`: they belong to the sources in `unnamed`, by default to all.
    """
    condition = F.lit(False)
    for source, partitions in ranges.items():
        for partition, (start, end) in partitions.items():
            condition |= (
                (F.col("topic") == topic_of(source))
                & (F.col("partition") == partition)
                & (F.col("offset") >= start)
                & (F.col("offset") < end)
                & _of(source, unnamed=unnamed is None or source in unnamed)
            )
    return condition


def source_epoch(ledger: Ledger) -> Column:
    """The source epoch of a row (`cdc-semantics` rule 2.5)."""
    none, first = F.lit(0).cast("bigint"), first_incarnations(ledger)
    # One list of cases, not one in the other: epochs that records open may be many.
    found: Column | None = None
    for source, partitions in ledger.sources.items():
        for partition, progress in partitions.items():
            place = (F.col("topic") == topic_of(source)) & (F.col("partition") == partition)
            place &= _of(source, unnamed=source in first)
            for start, epoch in reversed(progress.epochs):
                condition, value = place & (F.col("offset") >= start), F.lit(epoch).cast("bigint")
                found = F.when(condition, value) if found is None else found.when(condition, value)
    return none if found is None else found.otherwise(none)


def with_topic_id(rows: DataFrame) -> DataFrame:
    """A table that no newer release has written yet has no such column."""
    if TOPIC_ID in rows.columns:
        return rows
    return rows.withColumn(TOPIC_ID, F.lit(None).cast("string"))


def _of(source: str, *, unnamed: bool) -> Column:
    named = F.col(TOPIC_ID).eqNullSafe(incarnation_of(source))
    return named | F.col(TOPIC_ID).isNull() if unnamed else named

"""Rows of a bronze table by their coordinates, and what the ledger knows about a coordinate."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.lake.interval import KAFKA_TIME, SOURCE_TIME, Interval
from cdc_lakehouse.lake.ledger import Ledger, Ranges, first_incarnations, incarnation_of, topic_of
from cdc_lakehouse.lake.spans import Spans, spans_of

TOPIC_ID = "topic_id"


def in_ranges(ranges: Ranges, *, unnamed: Collection[str] | None = None) -> Column:
    """Rows whose coordinate lies in `ranges`: literals, so that Delta skips the other files.

    Rows of release 0.1.0 have no `topic_id`: they belong to the sources in `unnamed`, by default to all.
    """
    return in_spans(spans_of(ranges), unnamed=unnamed)


def in_spans(spans: Spans, *, unnamed: Collection[str] | None = None) -> Column:
    """The same for several ranges of each partition."""
    return any_of(
        (F.col("topic") == topic_of(source))
        & (F.col("partition") == partition)
        & _of(source, unnamed=unnamed is None or source in unnamed)
        & any_of((F.col("offset") >= start) & (F.col("offset") < until) for start, until in parts)
        for source, partitions in spans.items()
        for partition, parts in partitions.items()
    )


def in_interval(interval: Interval) -> Column:
    """Rows whose record came to Kafka, or whose event was committed at the source, within the interval."""

    def is_within(time: str) -> Column:
        return (F.col(time) >= F.lit(interval.start)) & (F.col(time) < F.lit(interval.until))

    times = [KAFKA_TIME, ".".join(SOURCE_TIME)]
    return any_of(F.coalesce(is_within(time), F.lit(False)) for time in times)


def any_of(conditions: Iterable[Column]) -> Column:
    """As a tree that is as deep as it must be: Spark walks through it by recursion, and gaps may be many."""
    found = list(conditions) or [F.lit(False)]
    while len(found) > 1:
        pairs = [found[place : place + 2] for place in range(0, len(found), 2)]
        found = [reduce(or_, pair) for pair in pairs]
    return found[0]


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

"""When the records of a gap came to Kafka, as far as the rows beside it tell."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.lake.coordinates import TOPIC_ID, with_topic_id
from cdc_lakehouse.lake.interval import KAFKA_TIME, SOURCE_TIME, Interval
from cdc_lakehouse.lake.ledger import incarnation_of, topic_of
from cdc_lakehouse.lake.progress import Span
from cdc_lakehouse.lake.spans import Spans, each_span

MOST_GAPS = 200
"""Gaps that one query asks about."""


def gaps_within(session: SparkSession, uri: str, gaps: Spans, interval: Interval) -> Spans:
    """Return the gaps that may hold records of the interval.

    A gap lies behind the interval, or before it, if the row before it, or behind it, says so. Without such a
    row nothing is known, and the gap counts. Behind the interval is what was committed there, too: records
    that came to Kafka late may be of it.
    """
    rows = with_topic_id(session.read.format("delta").load(uri))
    begins, ends = interval.micros
    listed = list(each_span(gaps))
    found: dict[str, dict[int, tuple[Span, ...]]] = {}
    for first in range(0, len(listed), MOST_GAPS):
        some = listed[first : first + MOST_GAPS]
        for (source, partition, gap), (before, behind) in zip(some, _times_beside(rows, some), strict=True):
            starts_late = before is not None and before >= ends
            ends_early = behind is not None and behind < begins
            if not starts_late and not ends_early:
                partitions = found.setdefault(source, {})
                partitions[partition] = (*partitions.get(partition, ()), gap)
    return found


def _times_beside(rows: DataFrame, gaps: list[tuple[str, int, Span]]) -> list[tuple[int | None, int | None]]:
    """Return the times of the rows just before and just behind each gap, as microseconds, in one query.

    Of the row before: of Kafka or of its commit, whichever is earlier.
    """
    times: list[Column] = []
    for number, (source, partition, (start, until)) in enumerate(gaps):
        own = (F.col("topic") == topic_of(source)) & (F.col("partition") == partition)
        own &= F.col(TOPIC_ID).isNull() | (F.col(TOPIC_ID) == incarnation_of(source))
        offset, time = F.col("offset"), F.unix_micros(KAFKA_TIME)
        earlier = F.least(time, F.unix_micros(".".join(SOURCE_TIME)))
        times.append(F.max_by(earlier, F.when(own & (offset < start), offset)).alias(f"before_{number}"))
        times.append(F.min_by(time, F.when(own & (offset >= until), offset)).alias(f"behind_{number}"))
    row = rows.agg(*times).collect()[0]
    return [(row[f"before_{number}"], row[f"behind_{number}"]) for number in range(len(gaps))]

"""When the records of a gap came to Kafka, as far as the rows beside it tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.bronze.gap_files import Beside
from cdc_lakehouse.lake.coordinates import TOPIC_ID, with_topic_id
from cdc_lakehouse.lake.interval import KAFKA_TIME, SOURCE_TIME, Interval
from cdc_lakehouse.lake.ledger import incarnation_of, topic_of
from cdc_lakehouse.lake.progress import Span
from cdc_lakehouse.lake.spans import Spans, each_span

MOST_GAPS = 200
"""Gaps that one query asks about."""
_Gap = tuple[str, int, Span]


def gaps_within(session: SparkSession, uri: str, gaps: Spans, interval: Interval) -> Spans:
    """Return the gaps that may hold records of the interval.

    Behind the interval is what was committed there, too: records that came to Kafka late may be of it.
    """
    rows = with_topic_id(session.read.format("delta").load(uri))
    listed = list(each_span(gaps))
    found: dict[str, dict[int, tuple[Span, ...]]] = {}
    for first in range(0, len(listed), MOST_GAPS):
        some = listed[first : first + MOST_GAPS]
        for (source, partition, gap), (before, behind) in zip(some, _times_around(rows, some), strict=True):
            if Beside(before, behind).may_lie_in(interval):
                partitions = found.setdefault(source, {})
                partitions[partition] = (*partitions.get(partition, ()), gap)
    return found


def _times_around(rows: DataFrame, gaps: Sequence[_Gap]) -> list[tuple[int | None, int | None]]:
    """Return the times before and behind each gap, as microseconds: None where nothing tells them.

    Behind the last row of an incarnation stands the first one of the next.
    """
    times = _times_beside(rows, gaps)
    last = {
        number: (gaps[number][0], came)
        for number, (came, _, behind) in enumerate(times)
        if behind is None and came is not None
    }
    following = _first_times_after(rows, last) if last else {}
    return [
        (min(filter(None, (came, committed)), default=None), following.get(number, behind))
        for number, (came, committed, behind) in enumerate(times)
    ]


def _times_beside(rows: DataFrame, gaps: Sequence[_Gap]) -> list[tuple[int | None, int | None, int | None]]:
    """Return when the row just before each gap came to Kafka and was committed, and when the row behind came.

    This is one query.
    """
    times: list[Column] = []
    for number, (source, partition, (start, until)) in enumerate(gaps):
        own = (F.col("topic") == topic_of(source)) & (F.col("partition") == partition)
        own &= F.col(TOPIC_ID).isNull() | (F.col(TOPIC_ID) == incarnation_of(source))
        offset, time = F.col("offset"), F.unix_micros(KAFKA_TIME)
        committed, is_before = F.unix_micros(".".join(SOURCE_TIME)), F.when(own & (offset < start), offset)
        times.append(F.max_by(time, is_before).alias(f"came_{number}"))
        times.append(F.max_by(committed, is_before).alias(f"committed_{number}"))
        times.append(F.min_by(time, F.when(own & (offset >= until), offset)).alias(f"behind_{number}"))
    row = rows.agg(*times).collect()[0]
    return [
        (row[f"came_{number}"], row[f"committed_{number}"], row[f"behind_{number}"])
        for number in range(len(gaps))
    ]


def _first_times_after(rows: DataFrame, last: Mapping[int, tuple[str, int]]) -> dict[int, int | None]:
    """Return when the next incarnation of a topic had its first row, for `last` times of earlier ones."""
    time = F.unix_micros(KAFKA_TIME)
    times = [
        F.min(
            F.when(
                (F.col("topic") == topic_of(source))
                & (F.col(TOPIC_ID) != incarnation_of(source))
                & (time > came),
                time,
            )
        ).alias(f"after_{number}")
        for number, (source, came) in last.items()
    ]
    row = rows.agg(*times).collect()[0]
    return {number: row[f"after_{number}"] for number in last}

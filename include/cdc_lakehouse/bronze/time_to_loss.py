"""How long until Kafka's retention overtakes a table: decisions on values, no I/O.

What is told is when the oldest record that the table has not read may be deleted at the earliest:

- `retention.ms` deletes a segment when its newest record is that old. So the timestamp of the first unread
  record plus `retention.ms` is a bound that holds; a table that has read everything has all of it.
- `retention.bytes` says nothing about time. What is deleted now was made when Kafka's oldest record was, so
  the time between that one and the first unread one is an *estimate*: it holds while records come as fast as
  they did. It is made only where Kafka has deleted anything yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from cdc_lakehouse.kafka.facts import TopicFacts

WARN_BELOW = 0.25
"""Of the retention."""

Place = tuple[str, int]
Ends = Mapping[str, Mapping[int, int]]
"""Topic -> partition -> first offset that was not read."""


@dataclass(frozen=True, slots=True)
class TimeToLoss:
    seconds: float
    topic: str
    partition: int
    by: str
    """The setting of the topic that will delete it."""
    estimated: bool
    retention_seconds: float

    @property
    def is_short(self) -> bool:
        return self.seconds < WARN_BELOW * self.retention_seconds

    def told(self) -> dict[str, Any]:
        return {**asdict(self), "is_short": self.is_short}


def offsets_to_date(
    topics: Mapping[str, TopicFacts], ends: Ends
) -> tuple[dict[Place, int], dict[Place, int]]:
    """Whose times must be known: of the first unread records, and of the oldest ones that Kafka holds."""
    unread: dict[Place, int] = {}
    oldest: dict[Place, int] = {}
    for name, partitions in ends.items():
        topic = topics.get(name)
        if topic is None or topic.retention is None:
            continue
        for partition, end in partitions.items():
            kept = topic.partitions.get(partition)
            if kept is None:
                continue
            limited = topic.retention.size_bytes is not None and 0 < kept.earliest < kept.latest
            if kept.earliest <= end < kept.latest and (limited or topic.retention.milliseconds is not None):
                unread[name, partition] = end
            if limited:
                oldest[name, partition] = kept.earliest
    return unread, oldest


def time_to_loss(
    topics: Mapping[str, TopicFacts],
    ends: Ends,
    *,
    unread: Mapping[Place, int],
    oldest: Mapping[Place, int],
    now: int,
) -> TimeToLoss | None:
    """Of the partition that is overtaken first; None where nothing is deleted, or nothing can be told.

    Times are milliseconds; `unread` and `oldest` are the timestamps of the records at those offsets.
    """
    found = list(_limits(topics, ends, unread=unread, oldest=oldest, now=now))
    return min(found, key=lambda limit: limit.seconds, default=None)


def _limits(
    topics: Mapping[str, TopicFacts],
    ends: Ends,
    *,
    unread: Mapping[Place, int],
    oldest: Mapping[Place, int],
    now: int,
) -> Iterator[TimeToLoss]:
    for name, partitions in ends.items():
        topic = topics.get(name)
        if topic is None or topic.retention is None:
            continue
        retention = topic.retention
        for partition, end in partitions.items():
            made = _made(topic, partition, end, unread=unread, now=now)
            if made is None:
                continue
            if retention.milliseconds is not None:
                left = made + retention.milliseconds - now
                yield _limit(name, partition, left, "retention.ms", whole=retention.milliseconds)
            first = oldest.get((name, partition))
            if retention.size_bytes is not None and first is not None and 0 <= first <= now:
                yield _limit(name, partition, made - first, "retention.bytes", whole=now - first)


def _made(
    topic: TopicFacts, partition: int, end: int, *, unread: Mapping[Place, int], now: int
) -> int | None:
    """When the first unread record was made: now, at the earliest, where there is none.

    None where its timestamp cannot be one: Kafka goes by the file's age then, which nobody tells.
    """
    kept = topic.partitions.get(partition)
    if kept is None:
        return None
    if end >= kept.latest:
        return now
    told = unread.get((topic.name, partition))
    return None if told is None or told < 0 else min(told, now)


def _limit(topic: str, partition: int, left: int, by: str, *, whole: int) -> TimeToLoss:
    return TimeToLoss(
        seconds=max(0, left) / 1000,
        topic=topic,
        partition=partition,
        by=by,
        estimated=by != "retention.ms",
        retention_seconds=whole / 1000,
    )

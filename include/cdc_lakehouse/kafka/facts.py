"""What Kafka holds of some topics at one moment: a value to decide on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """Visible records lie in [earliest, latest); gaps of transactions and compaction are legal.

    `latest` is where the first open transaction begins, or else behind the last record.
    """

    earliest: int
    latest: int
    leader_epoch: int | None = None
    """Of the leader that wrote the newest record; every election of a leader raises it."""


@dataclass(frozen=True, slots=True)
class Retention:
    """When Kafka deletes the oldest records of a topic; None stands for never."""

    milliseconds: int | None
    size_bytes: int | None
    """Of one partition."""

    @classmethod
    def from_settings(cls, settings: Mapping[str, str]) -> Retention:
        """Of a topic's own words: -1 means no limit, and a topic that is only compacted loses no key."""
        if "delete" not in settings.get("cleanup.policy", "delete"):
            return cls(milliseconds=None, size_bytes=None)
        limits = (int(settings.get(name, "-1")) for name in ("retention.ms", "retention.bytes"))
        milliseconds, size_bytes = (limit if limit >= 0 else None for limit in limits)
        return cls(milliseconds=milliseconds, size_bytes=size_bytes)


@dataclass(frozen=True, slots=True)
class TopicFacts:
    name: str
    topic_id: str
    """Kafka's own id of this incarnation; a topic that was deleted and made again has another."""
    partitions: Mapping[int, PartitionOffsets]
    retention: Retention | None = None
    """None where this login may not ask."""

    @property
    def source(self) -> str:
        """The name under which a ledger keeps this incarnation, unless its log was cut."""
        return f"{self.name}@{self.topic_id}"


Place = tuple[str, int]
"""Topic and partition."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    cluster_id: str
    topics: Mapping[str, TopicFacts]
    """Only the topics that exist and told everything."""
    silent: Mapping[str, str] = field(default_factory=dict)
    """Topics that exist but did not tell everything, and why: their tables wait, the others go on."""
    cut: Mapping[Place, int] = field(default_factory=dict)
    """Logs that lost their end and were written anew from that offset on, as far as a table asked."""

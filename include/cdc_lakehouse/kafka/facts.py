"""What Kafka holds of some topics at one moment: a value to decide on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """Visible records lie in [earliest, latest); gaps of transactions and compaction are legal."""

    earliest: int
    latest: int


@dataclass(frozen=True, slots=True)
class TopicFacts:
    name: str
    topic_id: str
    """Kafka's own id of this incarnation; a topic that was deleted and made again has another."""
    partitions: Mapping[int, PartitionOffsets]

    @property
    def source(self) -> str:
        """The name under which a ledger keeps this incarnation."""
        return f"{self.name}@{self.topic_id}"


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    cluster_id: str
    topics: Mapping[str, TopicFacts]
    """Only the topics that exist."""

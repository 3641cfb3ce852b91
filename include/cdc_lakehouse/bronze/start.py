"""Where a table begins that was never read: the pipeline's `start`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from cdc_lakehouse.kafka.cluster import Cluster
from cdc_lakehouse.kafka.facts import TopicFacts


def first_offsets(start: str, topic: TopicFacts, *, cluster: Cluster) -> Mapping[int, int]:
    """`earliest`, `latest` or a time, as offsets per partition."""
    if start == "earliest":
        return {partition: offsets.earliest for partition, offsets in topic.partitions.items()}
    if start == "latest":
        return {partition: offsets.latest for partition, offsets in topic.partitions.items()}
    return cluster.offsets_at(topic, datetime.fromisoformat(start))

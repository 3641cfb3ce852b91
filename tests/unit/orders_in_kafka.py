"""A table that has read one topic, and what Kafka holds of it: values for decisions."""

from __future__ import annotations

from cdc_lakehouse.kafka.facts import ClusterFacts, PartitionOffsets, TopicFacts
from cdc_lakehouse.lake.ledger import Kind, Ledger
from cdc_lakehouse.lake.progress import Progress

CLUSTER = "c1"
TOPIC = "shop.public.orders"
SOURCE = f"{TOPIC}@id1"


def ledger(**ends: int) -> Ledger:
    """`p0=5`: partition 0 was read up to 5."""
    partitions = {int(name[1:]): Progress(floor=0, end=end) for name, end in ends.items()}
    return ledger_of({SOURCE: partitions} if partitions else {})


def ledger_of(sources: dict[str, dict[int, Progress]], *, cluster_id: str = CLUSTER) -> Ledger:
    return Ledger(
        kind=Kind.BRONZE, pipeline="shop", table="orders", cluster_id=cluster_id, seq=3, sources=sources
    )


def topic(*offsets: tuple[int, int], name: str = TOPIC, topic_id: str = "id1") -> TopicFacts:
    partitions = {number: PartitionOffsets(*pair) for number, pair in enumerate(offsets)}
    return TopicFacts(name=name, topic_id=topic_id, partitions=partitions)


def facts(*offsets: tuple[int, int], topic_id: str = "id1", cluster_id: str = CLUSTER) -> ClusterFacts:
    return ClusterFacts(cluster_id, {TOPIC: topic(*offsets, topic_id=topic_id)})

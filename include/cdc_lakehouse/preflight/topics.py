"""Does Kafka have the topics, and does it keep what a drain will need?"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta

from cdc_lakehouse.config.models import Pipeline, Table
from cdc_lakehouse.errors import TopicMissingError
from cdc_lakehouse.kafka.cluster import Cluster
from cdc_lakehouse.kafka.facts import ClusterFacts, TopicFacts
from cdc_lakehouse.preflight.findings import Finding

_TIMEOUT_SECONDS = 10.0
_SHORT_RETENTION = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class TopicKeeping:
    """How long a topic keeps its records; None where Kafka keeps them forever."""

    compacted: bool
    retention: timedelta | None


def read_kafka(
    settings: Mapping[str, str], topics: Collection[str]
) -> tuple[ClusterFacts, Mapping[str, TopicKeeping]]:
    """Facts of the topics that exist; `BrokerUnavailableError` if nobody answers."""
    with closing(Cluster(settings, timeout_seconds=_TIMEOUT_SECONDS)) as cluster:
        facts = cluster.facts(topics)
        told = cluster.topic_settings(facts.topics)
    return facts, {topic: keeping_of(known) for topic, known in told.items()}


def topic_findings(
    pipeline: Pipeline, facts: ClusterFacts, keeping: Mapping[str, TopicKeeping]
) -> Iterator[Finding]:
    """One line per topic, and one more for each thing that will hurt later."""
    for table in pipeline.tables:
        for topic in table.topics:
            yield from _topic_findings(table, topic, facts.topics.get(topic), keeping.get(topic))


def keeping_of(settings: Mapping[str, str]) -> TopicKeeping:
    """From Kafka's own names: `cleanup.policy` and `retention.ms` (-1: forever)."""
    policies = settings.get("cleanup.policy", "delete").split(",")
    milliseconds = int(settings.get("retention.ms", "-1"))
    forever = milliseconds < 0 or "delete" not in policies
    return TopicKeeping(
        compacted="compact" in policies,
        retention=None if forever else timedelta(milliseconds=milliseconds),
    )


def _topic_findings(
    table: Table, topic: str, facts: TopicFacts | None, keeping: TopicKeeping | None
) -> Iterator[Finding]:
    subject = f"topic {topic}"
    if facts is None:
        yield Finding.from_error(subject, TopicMissingError(table=table.name, topic=topic, decision=""))
        return
    offsets = sum(p.latest - p.earliest for p in facts.partitions.values())
    yield Finding.fine(
        subject, f"partitions {len(facts.partitions)}, offsets held {offsets}, {_kept(keeping)}"
    )
    if keeping is None:
        yield Finding.warning(
            subject,
            "Kafka does not show its retention to this login",
            "Allow DescribeConfigs on the topic, or look with kafka-configs.sh yourself.",
        )
    elif keeping.compacted:
        yield Finding.warning(
            subject,
            "it is compacted, so Kafka throws older changes of a key away",
            "Set cleanup.policy=delete: deletes that were compacted away would leave rows behind in silver.",
        )
    if keeping is not None and keeping.retention is not None and keeping.retention < _SHORT_RETENTION:
        yield Finding.warning(
            subject,
            f"its records are kept for {_readable(keeping.retention)} only",
            "Raise retention.ms: a pipeline that stands still for longer loses changes.",
        )


def _kept(keeping: TopicKeeping | None) -> str:
    if keeping is None:
        return "retention unknown"
    return "kept forever" if keeping.retention is None else f"kept for {_readable(keeping.retention)}"


def _readable(span: timedelta) -> str:
    days, hours = span.days, span.total_seconds() / 3600
    return f"{days} d" if hours >= 48 else f"{hours:g} h"

"""Does Kafka have the topics, and does it keep what a drain will need?"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from cdc_lakehouse.config.models import Pipeline, Table
from cdc_lakehouse.errors import BrokerUnavailableError, TopicMissingError
from cdc_lakehouse.kafka.cluster import Cluster
from cdc_lakehouse.kafka.facts import ClusterFacts, TopicFacts
from cdc_lakehouse.preflight.findings import Finding

_TIMEOUT_SECONDS = 10.0
_NOT_ALLOWED = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
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
    facts = Cluster(settings).facts(topics)
    return facts, _keeping(settings, tuple(facts.topics))


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


def _keeping(settings: Mapping[str, str], topics: Collection[str]) -> dict[str, TopicKeeping]:
    """Of those topics whose settings this login may read."""
    if not topics:
        return {}
    admin = AdminClient(dict(settings))  # kept by name: futures of a collected client never succeed
    resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
    found = {}
    for resource, future in admin.describe_configs(resources, request_timeout=_TIMEOUT_SECONDS).items():
        try:
            entries = future.result(timeout=_TIMEOUT_SECONDS + 5)
        except KafkaException as error:
            if error.args[0].code() not in _NOT_ALLOWED:
                reason = error.args[0].str()
                raise BrokerUnavailableError(
                    bootstrap=settings["bootstrap.servers"], reason=reason
                ) from error
        else:
            found[resource.name] = keeping_of({name: entry.value for name, entry in entries.items()})
    return found

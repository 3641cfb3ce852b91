"""Ask a Kafka cluster for its facts, in as few rounds as it allows."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from datetime import datetime
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from cdc_lakehouse.errors import BrokerUnavailableError
from cdc_lakehouse.kafka.facts import ClusterFacts, PartitionOffsets, TopicFacts

logger = logging.getLogger(__name__)

_UNKNOWN_TOPIC = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED)


class Cluster:
    """A connection to one cluster; every failure of it is a `BrokerUnavailableError`."""

    def __init__(self, settings: Mapping[str, str], *, timeout_seconds: float = 15.0) -> None:
        self._bootstrap = settings["bootstrap.servers"]
        self._timeout = timeout_seconds
        self._reason = ""
        self._admin = AdminClient(
            {**settings, "error_cb": self._remember_reason, "logger": logger, "log_level": 2}
        )

    def topic_names(self) -> frozenset[str]:
        """Of all topics that this login may see."""
        try:
            return frozenset(self._admin.list_topics(timeout=self._timeout).topics)
        except KafkaException as exc:
            raise self._unavailable(exc.args[0].str()) from exc

    def facts(self, topics: Collection[str]) -> ClusterFacts:
        """Ids and read-committed offsets of those `topics` that exist."""
        cluster = self._answer(self._admin.describe_cluster(request_timeout=self._timeout))
        described = self._describe(topics)
        partitions = [
            TopicPartition(name, p.id) for name, topic in described.items() for p in topic.partitions
        ]
        earliest = self._offsets(partitions, OffsetSpec.earliest())
        latest = self._offsets(partitions, OffsetSpec.latest())
        found = {
            name: TopicFacts(
                name=name,
                topic_id=str(topic.topic_id),
                partitions={
                    p.id: PartitionOffsets(earliest[name, p.id], latest[name, p.id]) for p in topic.partitions
                },
            )
            for name, topic in described.items()
        }
        return ClusterFacts(cluster_id=cluster.cluster_id, topics=found)

    def offsets_at(self, topic: TopicFacts, moment: datetime) -> dict[int, int]:
        """Per partition the first offset at or after `moment`; the end where there is none."""
        partitions = [TopicPartition(topic.name, partition) for partition in topic.partitions]
        spec = OffsetSpec.for_timestamp(int(moment.timestamp() * 1000))
        found = self._offsets(partitions, spec)
        return {
            partition: offset if offset >= 0 else topic.partitions[partition].latest
            for (_, partition), offset in found.items()
        }

    def _describe(self, topics: Collection[str]) -> dict[str, Any]:
        if not topics:
            return {}
        futures = self._admin.describe_topics(TopicCollection(list(topics)), request_timeout=self._timeout)
        described = {name: self._answer(future, absent=_UNKNOWN_TOPIC) for name, future in futures.items()}
        return {name: topic for name, topic in described.items() if topic is not None}

    def _offsets(self, partitions: list[TopicPartition], spec: OffsetSpec) -> dict[tuple[str, int], int]:
        if not partitions:
            return {}
        futures = self._admin.list_offsets(
            dict.fromkeys(partitions, spec),
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=self._timeout,
        )
        return {(tp.topic, tp.partition): self._answer(future).offset for tp, future in futures.items()}

    def _answer(self, future: Future[Any], *, absent: tuple[int, ...] = ()) -> Any:
        try:
            return future.result(timeout=self._timeout + 5)
        except KafkaException as exc:
            error = exc.args[0]
            if error.code() in absent:
                return None
            raise self._unavailable(error.str()) from exc
        except TimeoutError as exc:
            raise self._unavailable("no answer in time") from exc

    def _unavailable(self, what: str) -> BrokerUnavailableError:
        self._admin.poll(0)  # librdkafka calls `error_cb` from here only
        return BrokerUnavailableError(bootstrap=self._bootstrap, reason=self._reason or what)

    def _remember_reason(self, error: KafkaError) -> None:
        """A refused login shows up only here, and 'all brokers are down' follows it at once."""
        if not self._reason or error.code() == KafkaError._AUTHENTICATION:
            self._reason = error.str()

"""Ask a Kafka cluster for its facts, in as few rounds as it allows."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType

from cdc_lakehouse.errors import BrokerUnavailableError
from cdc_lakehouse.kafka.cut_logs import Mark, cut_logs
from cdc_lakehouse.kafka.facts import ClusterFacts, PartitionOffsets, Place, Retention, TopicFacts

logger = logging.getLogger(__name__)

_NO_CERTIFICATE = re.compile(r"SSL alert number (42|116)\b")
"""How a broker ends the handshake with a client that shows none: Java's says `bad certificate`."""
_UNKNOWN_TOPIC = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOT_ALLOWED = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)


class _Reason:
    """The word that tells most of why nobody answers."""

    text = ""

    def remember(self, error: KafkaError) -> None:
        """A refused login shows up only here, and 'all brokers are down' follows it at once."""
        if not self.text or error.code() == KafkaError._AUTHENTICATION:
            self.text = error.str()


class Cluster:
    """A connection to one cluster; every failure of the whole of it is a `BrokerUnavailableError`.

    It ends with `close`, on the thread that calls it. librdkafka aborts the process when a client is freed on
    a thread of its own, where Python may collect garbage whenever an answer arrives. So the client must never
    be garbage: nothing that it refers to may refer to it, as a callback that is bound to this object would.
    """

    def __init__(self, settings: Mapping[str, str], *, timeout_seconds: float = 15.0) -> None:
        self._settings = settings
        self._bootstrap = settings["bootstrap.servers"]
        self._timeout = timeout_seconds
        self._reason = _Reason()
        self._client: AdminClient | None = AdminClient(
            {**settings, "error_cb": self._reason.remember, "logger": logger, "log_level": 2}
        )

    def close(self) -> None:
        """Wait until the client has ended: no open question is answered then. A second call does nothing."""
        self._client = None

    @property
    def _admin(self) -> AdminClient:
        if self._client is None:
            raise RuntimeError("the connection was closed")
        return self._client

    def topic_names(self) -> frozenset[str]:
        """Of all topics that this login may see."""
        try:
            return frozenset(self._admin.list_topics(timeout=self._timeout).topics)
        except KafkaException as exc:
            raise self._unavailable(exc.args[0].str()) from exc

    def facts(self, topics: Collection[str]) -> ClusterFacts:
        """Ids, retention and read-committed offsets of those `topics` that exist: two rounds for all.

        Offsets are asked for after ids: what a topic that is made again meanwhile holds is never taken
        for what the old one held, because the ids are asked for once more before a batch is committed.
        """
        asked = self._admin.describe_cluster(request_timeout=self._timeout)
        retentions = self._ask_settings(topics)
        described = self._describe(topics)
        cluster = self._answer(asked)
        places = [(name, p.id) for name, topic in described.items() for p in topic.partitions]
        ask_earliest = self._ask_offsets(places, OffsetSpec.earliest())
        ask_latest = self._ask_offsets(places, OffsetSpec.latest())
        silent: dict[str, str] = {}
        earliest, latest = self._told(ask_earliest, silent), self._told(ask_latest, silent)
        found = {
            name: TopicFacts(
                name=name,
                topic_id=str(topic.topic_id),
                partitions={
                    p.id: PartitionOffsets(
                        earliest[name, p.id].offset,
                        latest[name, p.id].offset,
                        latest[name, p.id].leader_epoch,
                    )
                    for p in topic.partitions
                },
                retention=self._retention(retentions.get(name)),
            )
            for name, topic in described.items()
            if name not in silent
        }
        return ClusterFacts(cluster_id=cluster.cluster_id, topics=found, silent=silent)

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        """Ids of those `topics` that exist: what the records that were read a moment ago belong to."""
        return {name: str(topic.topic_id) for name, topic in self._describe(topics).items()}

    def written(self, topics: Collection[str]) -> dict[str, dict[int, int]]:
        """`<topic>@<topic_id>` -> partition -> behind its last record, those of open transactions included.

        Topics that do not exist or do not answer are left out. Ids are asked for first: who asks for them
        again afterwards knows whether the ends are those of the same topics.
        """
        described = self._describe(topics)
        places = [(name, p.id) for name, topic in described.items() for p in topic.partitions]
        asked = self._ask_offsets(places, OffsetSpec.latest(), isolation=IsolationLevel.READ_UNCOMMITTED)
        silent: dict[str, str] = {}
        told = self._told(asked, silent)
        return {
            f"{name}@{topic.topic_id}": {p.id: told[name, p.id].offset for p in topic.partitions}
            for name, topic in described.items()
            if name not in silent
        }

    def topic_settings(self, topics: Collection[str]) -> dict[str, dict[str, str]]:
        """Settings of those `topics` that this login may read."""
        asked = {name: self._answer(f, absent=_NOT_ALLOWED) for name, f in self._ask_settings(topics).items()}
        return {
            name: {key: entry.value for key, entry in settings.items()}
            for name, settings in asked.items()
            if settings is not None
        }

    def cut_logs(self, marks: Mapping[Place, Mark]) -> dict[Place, int]:
        """Logs that were cut below their mark: the offset from which on they were written anew."""
        return cut_logs(self._settings, marks)

    def offsets_at(self, topic: TopicFacts, moment: datetime) -> dict[int, int]:
        """Per partition the first offset at or after `moment`; the end where there is none."""
        places = [(topic.name, partition) for partition in topic.partitions]
        asked = self._ask_offsets(places, OffsetSpec.for_timestamp(millis_from(moment)))
        found = {partition: self._answer(future).offset for (_, partition), future in asked.items()}
        return {
            partition: offset if offset >= 0 else topic.partitions[partition].latest
            for partition, offset in found.items()
        }

    def _describe(self, topics: Collection[str]) -> dict[str, Any]:
        if not topics:
            return {}
        futures = self._admin.describe_topics(TopicCollection(list(topics)), request_timeout=self._timeout)
        described = {name: self._answer(future, absent=_UNKNOWN_TOPIC) for name, future in futures.items()}
        return {name: topic for name, topic in described.items() if topic is not None}

    def _ask_offsets(
        self,
        places: Iterable[Place],
        spec: OffsetSpec,
        *,
        isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> dict[Place, Future[Any]]:
        partitions = [TopicPartition(topic, partition) for topic, partition in places]
        if not partitions:
            return {}
        futures = self._admin.list_offsets(
            dict.fromkeys(partitions, spec),
            isolation_level=isolation,
            request_timeout=self._timeout,
        )
        return {(tp.topic, tp.partition): future for tp, future in futures.items()}

    def _told(self, asked: Mapping[Place, Future[Any]], silent: dict[str, str]) -> dict[Place, Any]:
        """Offset and leader epoch by place; a topic whose leader is away is `silent`, and costs no other."""
        found: dict[Place, Any] = {}
        for (topic, partition), future in asked.items():
            try:
                found[topic, partition] = self._answer(future)
            except BrokerUnavailableError as exc:
                silent.setdefault(topic, f"{topic}/{partition}: {exc.reason}")
        if asked and not found:
            raise self._unavailable(next(iter(silent.values())))
        return found

    def _ask_settings(self, topics: Collection[str]) -> dict[str, Future[Any]]:
        if not topics:
            return {}
        resources = {name: ConfigResource(ResourceType.TOPIC, name) for name in topics}
        futures = self._admin.describe_configs(list(resources.values()), request_timeout=self._timeout)
        return {name: futures[resource] for name, resource in resources.items()}

    def _retention(self, asked: Future[Any] | None) -> Retention | None:
        """None where the login may not ask: a run needs no settings to be right."""
        if asked is None:
            return None
        try:
            settings = asked.result(timeout=self._timeout + 5)
        except (KafkaException, TimeoutError) as exc:
            logger.info("retention is not told", extra={"reason": str(exc)})
            return None
        return Retention.from_settings({name: entry.value for name, entry in settings.items()})

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
        reason = self._reason.text or what
        if _NO_CERTIFICATE.search(reason) and "ssl.certificate.pem" not in self._settings:
            reason += "; it asks for a certificate, and the connection has no certificate_pem"
        return BrokerUnavailableError(bootstrap=self._bootstrap, reason=reason)


def millis_from(moment: datetime) -> int:
    """Return the first whole millisecond since 1970 that is not before `moment`: Kafka has no finer times."""
    return -((_EPOCH - moment) // timedelta(milliseconds=1))

"""A real broker, and what producers and operators do to the topics of a table."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from confluent_kafka import OFFSET_END, Consumer, IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from cdc_lakehouse.errors import BrokerUnavailableError
from cdc_lakehouse.kafka.cluster import Cluster
from cdc_lakehouse.kafka.facts import ClusterFacts, TopicFacts

HUGE = 30 * 1024 * 1024
SECONDS = 30


@dataclass(frozen=True)
class Broker:
    settings: dict[str, str]

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient(self.settings)

    @cached_property
    def cluster(self) -> Cluster:
        return Cluster(self.settings)

    def close(self) -> None:
        """End both clients on this thread."""
        self.cluster.close()
        self.__dict__.pop("admin", None)

    def facts(self, *topics: str) -> ClusterFacts:
        return self.cluster.facts(topics)

    def create(self, topic: str, *, partitions: int = 1, **settings: str) -> str:
        """Its id, when the broker tells it to everybody."""
        told = {name.replace("_", "."): value for name, value in settings.items()}
        for future in self.admin.create_topics([NewTopic(topic, partitions, 1, config=told)]).values():
            future.result(SECONDS)
        until = time.monotonic() + SECONDS
        while not (known := self._known(topic)) or len(known.partitions) < partitions:
            assert time.monotonic() < until, f"{topic} is not there"
        return known.topic_id

    def wait_for(self, *topics: str) -> None:
        """A broker that has just started leads its partitions a little later."""
        until = time.monotonic() + SECONDS
        while not all(map(self._known, topics)):
            assert time.monotonic() < until, f"{topics} are not there"

    def delete(self, topic: str) -> None:
        for future in self.admin.delete_topics([topic]).values():
            future.result(SECONDS)
        until = time.monotonic() + SECONDS
        while self.cluster.topic_ids([topic]):
            assert time.monotonic() < until, f"{topic} is still there"

    def create_again(self, topic: str, *, partitions: int = 1) -> str:
        self.delete(topic)
        return self.create(topic, partitions=partitions)

    def add_partitions(self, topic: str, total: int) -> None:
        for future in self.admin.create_partitions([NewPartitions(topic, total)]).values():
            future.result(SECONDS)
        until = time.monotonic() + SECONDS
        # Until a new partition has a leader its topic is silent.
        while (found := self._known(topic)) is None or len(found.partitions) < total:
            assert time.monotonic() < until, f"{topic} has no {total} partitions"

    def age_out(self, topic: str, before: int, *, partition: int = 0) -> None:
        """What retention does, now."""
        for future in self.admin.delete_records([TopicPartition(topic, partition, before)]).values():
            future.result(SECONDS)

    def compact_soon(self) -> None:
        """The cleaner of logs looks for work every fifteen seconds unless it is told otherwise."""
        often = ConfigEntry("log.cleaner.backoff.ms", "200", incremental_operation=AlterConfigOpType.SET)
        broker = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[often])
        for future in self.admin.incremental_alter_configs([broker]).values():
            future.result(SECONDS)

    def send(self, topic: str, values: Iterable[bytes | None], **message: Any) -> None:
        """All in their order, committed on their own."""
        producer = Producer({**self.settings, "message.max.bytes": HUGE, "linger.ms": 0})
        _produce(producer, topic, values, **message)

    @contextmanager
    def transaction(self, topic: str, values: Iterable[bytes | None], **message: Any) -> Iterator[Producer]:
        """Open inside the block, which says how it ends. Its marker comes a little later: waited for."""
        producer = Producer({**self.settings, "transactional.id": f"{topic}-{time.monotonic_ns()}"})
        producer.init_transactions(SECONDS)
        producer.begin_transaction()
        _produce(producer, topic, values, **message)
        yield producer
        until = time.monotonic() + SECONDS
        while self._ends(topic, IsolationLevel.READ_COMMITTED) != self._ends(
            topic, IsolationLevel.READ_UNCOMMITTED
        ):
            assert time.monotonic() < until, f"{topic} has an open transaction"

    def _known(self, topic: str) -> TopicFacts | None:
        with suppress(BrokerUnavailableError):
            return self.facts(topic).topics.get(topic)
        return None

    def _ends(self, topic: str, isolation: IsolationLevel) -> dict[TopicPartition, int]:
        known = self.facts(topic).topics[topic].partitions
        asked = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in known}
        answers = self.admin.list_offsets(asked, isolation_level=isolation)
        return {place: future.result(SECONDS).offset for place, future in answers.items()}

    def offsets(self, topic: str, partition: int = 0) -> list[int]:
        """Of the records that a reader sees, read to the end as of now."""
        end = self.facts(topic).topics[topic].partitions[partition].latest
        settings = {"group.id": "tests", "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
        found: list[int] = []
        with closing(Consumer({**self.settings, **settings, "enable.partition.eof": True})) as consumer:
            consumer.assign([TopicPartition(topic, partition, 0)])
            while (message := consumer.poll(SECONDS)) is not None and message.error() is None:
                found.append(message.offset())
        assert end != OFFSET_END
        return found


def _produce(producer: Producer, topic: str, values: Iterable[bytes | None], **message: Any) -> None:
    failed: list[str] = []
    key = message.pop("key", b"k")

    def told(error: Any, _message: Any) -> None:
        if error is not None:
            failed.append(str(error))

    for value in values:
        producer.produce(topic, value=value, key=key, on_delivery=told, **{"partition": 0, **message})
    left = producer.flush(SECONDS)
    assert (left, failed) == (0, [])

"""A real broker with a topic of a million change events, one partition per core."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.streams import Stream  # type: ignore[import-not-found]
from cdc_lakehouse.config.settings import Connection, Role, connection_from_environment
from local_stack import LocalStack

TOPIC = "shop.public.orders"
PARTITIONS = 2
BLOCK = 100_000
"""Different records; the topic has them several times over."""
_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class Source:
    """What a variant in another process needs to read the topic."""

    stream: Stream
    records: int
    environment: dict[str, str] = field(repr=False)

    @property
    def connection(self) -> Connection:
        return connection_from_environment(Role.KAFKA, self.environment)


@contextmanager
def filled_broker(stream: Stream, records: int, *, folder: Path) -> Iterator[Source]:
    """Only the broker of the local stack, in a folder of its own, for the length of the block."""
    with LocalStack(folder / "stack").running("kafka") as stack:
        _fill(stack.kafka.client_settings(), stream, records)
        yield Source(stream, records, stack.job_environment())


def _fill(settings: dict[str, str], stream: Stream, records: int) -> None:
    new = NewTopic(TOPIC, num_partitions=PARTITIONS, replication_factor=1)
    admin = AdminClient(settings)  # held: what it was asked ends with it
    for done in admin.create_topics([new]).values():
        done.result()
    producer = Producer({**settings, "linger.ms": 50, "queue.buffering.max.messages": 2 * _AT_ONCE})
    block, share = stream.records(BLOCK), BLOCK // PARTITIONS
    for partition in range(PARTITIONS):
        own = block[partition * share : (partition + 1) * share]
        for number, (key, value) in enumerate(islice(cycle(own), records // PARTITIONS)):
            producer.produce(TOPIC, key=key, value=value, partition=partition)
            if number % _AT_ONCE == 0:
                producer.flush()
    producer.flush()

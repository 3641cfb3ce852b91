"""The newest records of the topic in which Kafka Connect keeps what its connectors have committed."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from cdc_lakehouse.errors import BrokerUnavailableError

logger = logging.getLogger(__name__)

_SECONDS = 10.0
_NEWEST = 500
"""Of each partition. A connector at work commits each minute; one that rests has nothing new to say."""
_TAIL = -2000
"""From the end backwards, in the words of librdkafka: RD_KAFKA_OFFSET_TAIL_BASE."""
_SETTINGS = {
    # Nothing is ever committed; the client wants a name.
    "group.id": "cdc_lakehouse.offsets_topic",
    "enable.auto.commit": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    # The end is told with an empty answer: a broker would keep it back for half a second.
    "fetch.wait.max.ms": "10",
}


class Committed(NamedTuple):
    """Both as Connect wrote them."""

    key: Any
    offset: Any


def newest_committed(settings: Mapping[str, str], topic: str) -> list[Committed]:
    """Oldest first; a connector whose offsets were deleted has none.

    Raises `BrokerUnavailableError`, and `ValueError` for a topic that holds something else.
    """
    consumer = Consumer({**settings, **_SETTINGS, "logger": logger, "log_level": 2})
    try:
        found = sorted(_read(consumer, topic), key=lambda message: message.timestamp()[1])
    except (KafkaException, TimeoutError) as exc:
        reason = f"{topic}: {exc}"
        raise BrokerUnavailableError(bootstrap=settings["bootstrap.servers"], reason=reason) from exc
    finally:
        consumer.close()
    newest: dict[bytes, bytes | None] = {}
    for message in found:
        newest.pop(message.key(), None)
        newest[message.key()] = message.value()
    return [Committed(json.loads(key), json.loads(value)) for key, value in newest.items() if key and value]


def _read(consumer: Consumer, topic: str) -> Iterator[Message]:
    known = consumer.list_topics(topic, timeout=_SECONDS).topics[topic]
    if known.error is not None:
        raise KafkaException(known.error)
    waiting, until = set(known.partitions), time.monotonic() + _SECONDS
    consumer.assign([TopicPartition(topic, partition, _TAIL - _NEWEST) for partition in waiting])
    while waiting:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"partitions {sorted(waiting)} did not answer in time")
        message = consumer.poll(left)
        error = None if message is None else message.error()
        if message is None or (error is not None and error.code() == KafkaError._PARTITION_EOF):
            waiting -= set() if message is None else {message.partition()}
        elif error is not None:
            raise KafkaException(error)
        else:
            yield message

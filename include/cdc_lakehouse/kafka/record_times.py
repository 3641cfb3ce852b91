"""When records at given offsets were made, by their own timestamps."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, TopicPartition

logger = logging.getLogger(__name__)

Place = tuple[str, int]
"""Topic and partition."""
_SECONDS = 5.0
_SETTINGS = {
    # Nothing is ever committed; the client wants a name.
    "group.id": "cdc_lakehouse.record_times",
    "enable.auto.commit": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    # One record of each partition is wanted. A larger one comes whole nevertheless.
    "fetch.message.max.bytes": "1024",
    "queued.max.messages.kbytes": "1024",
    "queued.min.messages": "1",
    # That one suffices is no reason to leave the other partitions of the broker alone for a second.
    "fetch.queue.backoff.ms": "5",
}


def record_times(settings: Mapping[str, str], offsets: Mapping[Place, int]) -> dict[Place, int]:
    """Milliseconds of the first visible record at or behind each offset, for all in one round.

    Places that have none, or that do not answer in time, are left out: a report is worth no waiting.
    """
    if not offsets:
        return {}
    consumer = Consumer({**settings, **_SETTINGS, "logger": logger, "log_level": 2})
    try:
        return _first_of_each(consumer, offsets)
    finally:
        consumer.close()


def _first_of_each(consumer: Consumer, offsets: Mapping[Place, int]) -> dict[Place, int]:
    consumer.assign([TopicPartition(topic, p, offset) for (topic, p), offset in offsets.items()])
    found: dict[Place, int] = {}
    waiting, until = set(offsets), time.monotonic() + _SECONDS
    while waiting and (left := until - time.monotonic()) > 0:
        message = consumer.poll(left)
        if message is None or message.topic() is None:
            continue
        place = (message.topic(), message.partition())
        if message.error() is None:
            found.setdefault(place, message.timestamp()[1])
        elif message.error().code() != KafkaError._PARTITION_EOF:
            logger.info("a record's time is not told", extra={"reason": message.error().str()})
        if place in waiting:
            waiting.remove(place)
            consumer.incremental_unassign([TopicPartition(*place)])
    return found

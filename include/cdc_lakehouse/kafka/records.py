"""The visible records of a range of one partition, one after the other."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

logger = logging.getLogger(__name__)

_SECONDS = 60.0
_SETTINGS = {
    # Nothing is ever committed; the client wants a name.
    "group.id": "cdc_lakehouse.records",
    "enable.auto.commit": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "queued.max.messages.kbytes": "32768",
}


class UnreadRecordsError(Exception):
    """Kafka did not give out what it was asked for; why is all that it says."""


def records_between(
    settings: Mapping[str, str], topic: str, partition: int, *, start: int, until: int
) -> Iterator[Message]:
    """In the order of their offsets, `until` left out. None is missed: `UnreadRecordsError` instead."""
    consumer = Consumer({**settings, **_SETTINGS, "logger": logger, "log_level": 2})
    try:
        consumer.assign([TopicPartition(topic, partition, start)])
        while (message := _next(consumer, f"{topic}/{partition}", until=until)) is not None:
            yield message
    finally:
        consumer.close()


def _next(consumer: Consumer, place: str, *, until: int) -> Message | None:
    while (message := consumer.poll(_SECONDS)) is not None:
        error, offset = message.error(), message.offset()
        at_end = error is not None and error.code() == KafkaError._PARTITION_EOF
        if (error is None or at_end) and offset is not None and offset >= until:
            return None
        if error is None:
            return message
        if at_end:
            raise UnreadRecordsError(f"{place} ends at {offset}, below {until}")
        if error.code() == KafkaError._AUTO_OFFSET_RESET or error.fatal() or not error.retriable():
            raise UnreadRecordsError(f"{place}: {error.str()}")
        logger.info("a broker is slow", extra={"reason": error.str()})
    raise UnreadRecordsError(f"{place}: nothing came for {_SECONDS:.0f} seconds")

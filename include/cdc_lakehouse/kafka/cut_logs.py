"""Whether a log still holds what it held under an earlier leader: KIP-320, as librdkafka carries it out.

A consumer that begins at an offset and names the leader epoch it knows of it is told where the records of
that epoch end now. Where that is below, the log lost its end and has given those offsets away again.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, TopicPartition

from cdc_lakehouse.errors import BrokerUnavailableError
from cdc_lakehouse.kafka.facts import Place

logger = logging.getLogger(__name__)

Mark = tuple[int, int]
"""An offset, and the leader epoch of what lies below it."""
_SECONDS = 15.0
_CUT = re.compile(r"log truncation detected at offset \d+ .*?broker end offset is (-?\d+)")
_SETTINGS = {
    # Nothing is ever committed; the client wants a name.
    "group.id": "cdc_lakehouse.cut_logs",
    "enable.auto.commit": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
    # No record is wanted. One of each partition comes nevertheless.
    "fetch.message.max.bytes": "1024",
    "queued.max.messages.kbytes": "1024",
    "queued.min.messages": "1",
}


def cut_logs(settings: Mapping[str, str], marks: Mapping[Place, Mark]) -> dict[Place, int]:
    """The offset from which on each log that was cut below its mark was written anew; one round for all.

    Raises `BrokerUnavailableError` unless all of them answer.
    """
    if not marks:
        return {}
    consumer = Consumer({**settings, **_SETTINGS, "logger": logger, "log_level": 2})
    try:
        return _told(consumer, marks, bootstrap=settings["bootstrap.servers"])
    finally:
        consumer.close()


def _told(consumer: Consumer, marks: Mapping[Place, Mark], *, bootstrap: str) -> dict[Place, int]:
    places = [TopicPartition(t, p, offset, leader_epoch=epoch) for (t, p), (offset, epoch) in marks.items()]
    consumer.assign(places)
    found: dict[Place, int] = {}
    waiting, until = set(marks), time.monotonic() + _SECONDS
    while waiting and (left := until - time.monotonic()) > 0:
        message = consumer.poll(left)
        if message is None or message.topic() is None:
            continue
        place, error = (message.topic(), message.partition()), message.error()
        if place not in waiting:
            continue
        cut = None if error is None else _CUT.search(error.str())
        if cut is not None and int(cut.group(1)) >= 0:
            found[place] = int(cut.group(1))
        elif error is not None and error.code() != KafkaError._PARTITION_EOF:
            # A log whose records of that epoch aged out cannot tell, and gave no offset away again.
            logger.warning("a log does not tell its leader epochs", extra={"reason": error.str()})
        waiting.remove(place)
        consumer.incremental_unassign([TopicPartition(*place)])
    if waiting:
        raise BrokerUnavailableError(
            bootstrap=bootstrap, reason=f"no leader epochs of {sorted(waiting)} in time"
        )
    return found

"""What a find leaves for the person who looks for its cause: logs, the WAL and what Connect committed.

`pg_waldump` reads the copy of the WAL; behind the run nothing else has it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from history.world import World  # type: ignore[import-not-found]
from local_stack.connect import OFFSETS_TOPIC

_SECONDS = 10.0


def keep(world: World, folder: Path) -> None:
    """In `folder`, which may have those of an earlier find."""
    site = world.stack.site
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(site.layout.log("connect").parent, folder / "logs")
    shutil.copytree(world.stack.postgres.folder / "data" / "pg_wal", folder / "wal")
    lines = "".join(f"{line}\n" for line in _committed(world))
    (folder / "committed-offsets.jsonl").write_text(lines, encoding="utf-8")


def _committed(world: World) -> Iterator[str]:
    """Every offset that the connector has committed, in the order of time."""
    consumer = Consumer({**world.stack.kafka.client_settings(), "group.id": "keepsakes"})
    found: list[tuple[int, str]] = []
    try:
        known = consumer.list_topics(OFFSETS_TOPIC, timeout=_SECONDS).topics[OFFSETS_TOPIC]
        for partition in known.partitions:
            place = TopicPartition(OFFSETS_TOPIC, partition)
            first, end = consumer.get_watermark_offsets(place, timeout=_SECONDS)
            consumer.assign([TopicPartition(OFFSETS_TOPIC, partition, first)])
            position = first
            while position < end:
                message = consumer.poll(_SECONDS)
                if message is None:
                    raise TimeoutError(f"{OFFSETS_TOPIC} of {world.name} does not end")
                position = message.offset() + 1
                key, value = json.loads(message.key()), json.loads(message.value() or b"null")
                if key[0] == world.name:
                    time = message.timestamp()[1]
                    found.append((time, json.dumps({"time": time, "offset": value})))
    finally:
        consumer.close()
    yield from (line for _, line in sorted(found))

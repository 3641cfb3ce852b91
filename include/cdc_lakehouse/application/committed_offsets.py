"""What connectors have committed to Kafka Connect, from the topic that the source's connection names."""

from __future__ import annotations

from collections.abc import Mapping

from cdc_lakehouse.database.access import Database
from cdc_lakehouse.kafka.offsets_topic import Committed, newest_committed


def committed_offsets(database: Database, kafka: Mapping[str, str]) -> list[Committed]:
    """`kafka` are the settings of its client. Raises what a person has to correct in the connection."""
    topic = database.settings.offsets_topic
    if topic is None:
        raise database.named.problem("its extra has no `offsets_topic`, the topic of Connect's offsets")
    try:
        return newest_committed(kafka, topic)
    except ValueError as exc:
        raise database.named.problem(f"its `offsets_topic` {topic} holds something else") from exc

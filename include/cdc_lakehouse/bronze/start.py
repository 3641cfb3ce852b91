"""First offsets of a table that was never read: the pipeline's `start`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from cdc_lakehouse.kafka.cluster import Cluster
from cdc_lakehouse.kafka.facts import TopicFacts

EARLIEST = "earliest"
LATEST = "latest"

Starts = Mapping[str, Mapping[int, int]]
"""Topic -> partition -> first offset, for topics that the table never read."""


@dataclass(frozen=True, slots=True)
class Start:
    """The first offsets of a table's topics, as the pipeline's `start` gives them at one moment."""

    setting: str = EARLIEST
    offsets: Starts = field(default_factory=dict)
    is_final: bool = False
    """The ledger states them before any record is read, since another look would give other offsets."""


NO_START = Start()


def start_of(
    setting: str,
    topics: Iterable[TopicFacts],
    *,
    cluster: Cluster,
    joins: bool = False,
    since: datetime | None = None,
) -> Start:
    """Return the first offsets of `topics` that a table never read.

    With `latest` a topic that `joins` a table begins at its first record, and a table that is discovered
    later than others begins with the records since the first discovery: neither topic existed when the
    pipeline began. A time in the future is not final: nothing is read before it.
    """
    if setting == EARLIEST or (setting == LATEST and joins):
        return Start(setting, {topic.name: _first_offsets(topic) for topic in topics})
    if setting == LATEST and since is None:
        return Start(setting, {topic.name: _end_offsets(topic) for topic in topics}, is_final=True)
    moment = datetime.fromisoformat(setting) if since is None else since
    offsets = {topic.name: _offsets_since(moment, topic, cluster=cluster) for topic in topics}
    return Start(setting, offsets, is_final=moment <= datetime.now(UTC))


def _first_offsets(topic: TopicFacts) -> Mapping[int, int]:
    return {partition: offsets.earliest for partition, offsets in topic.partitions.items()}


def _end_offsets(topic: TopicFacts) -> Mapping[int, int]:
    return {partition: offsets.latest for partition, offsets in topic.partitions.items()}


def _offsets_since(moment: datetime, topic: TopicFacts, *, cluster: Cluster) -> Mapping[int, int]:
    """Return the first offsets at or after `moment`.

    The broker is asked after the facts were collected: an offset behind the end that they state counts as it.
    """
    ends = _end_offsets(topic)
    return {p: min(offset, ends[p]) for p, offset in cluster.offsets_at(topic, moment).items()}

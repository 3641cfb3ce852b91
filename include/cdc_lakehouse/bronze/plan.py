"""What to read next, and whether a batch may be written: decisions on values, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cdc_lakehouse.errors import (
    OffsetsLostError,
    SupersededError,
    TopicMissingError,
    TopicRecreatedError,
)
from cdc_lakehouse.kafka.facts import ClusterFacts, TopicFacts
from cdc_lakehouse.lake.ledger import Ledger, Ranges, incarnation_of, topic_of

Starts = Mapping[str, Mapping[int, int]]
"""Topic -> partition -> first offset, for partitions that the table never read."""


@dataclass(frozen=True, slots=True)
class DrainPlan:
    """Read [start, until) of every partition; `until` is what Kafka held when it was asked."""

    table: str
    ledger: Ledger
    topics: tuple[TopicFacts, ...]
    start: Mapping[str, Mapping[int, int]]
    """Topic -> partition -> offset, for every partition of every topic."""
    until: Mapping[str, Mapping[int, int]]

    @property
    def is_idle(self) -> bool:
        return self.start == self.until

    @property
    def backlog(self) -> int:
        """Offsets to go; transactions and compaction leave fewer records than that."""
        return sum(self.backlogs())

    def backlogs(self) -> list[int]:
        """The same per partition."""
        return [
            self.until[topic][partition] - offset
            for topic, partitions in self.start.items()
            for partition, offset in partitions.items()
        ]

    @property
    def topic_ids(self) -> dict[str, str]:
        """Topic -> what the rows of this drain have as `topic_id`."""
        return {topic.name: incarnation_of(topic.source) for topic in self.topics}

    @property
    def planned(self) -> Ranges:
        """All that is to be read, of every partition, under the names that a ledger uses."""
        return {
            topic.source: {
                partition: (start, self.until[topic.name][partition])
                for partition, start in self.start[topic.name].items()
            }
            for topic in self.topics
        }

    def added(self, start: Mapping[str, Mapping[int, int]], end: Mapping[str, Mapping[int, int]]) -> Ranges:
        """The ranges between two positions of this drain, under the names that a ledger uses."""
        source = {topic.name: topic.source for topic in self.topics}
        moved = {
            source[topic]: {
                partition: (start[topic][partition], until)
                for partition, until in partitions.items()
                if until > start[topic][partition]
            }
            for topic, partitions in end.items()
        }
        return {name: partitions for name, partitions in moved.items() if partitions}


def plan_drain(ledger: Ledger, topics: tuple[str, ...], *, facts: ClusterFacts, first: Starts) -> DrainPlan:
    """From the ledger's end to what Kafka holds now. Raises a `DataError` where that cannot be right."""
    found = tuple(_existing(ledger, topic, facts=facts) for topic in topics)
    start = {topic.name: _starts(ledger, topic, first=first.get(topic.name, {})) for topic in found}
    until = {topic.name: {p: offsets.latest for p, offsets in topic.partitions.items()} for topic in found}
    return DrainPlan(table=ledger.table, ledger=ledger, topics=found, start=start, until=until)


def never_read(ledger: Ledger, topics: tuple[str, ...], *, facts: ClusterFacts) -> tuple[TopicFacts, ...]:
    """Topics that this table meets for the first time: the pipeline's `start` decides where it begins.

    A partition that appears later always starts at its first record: its keys moved there.
    """
    found = (facts.topics[topic] for topic in topics if topic in facts.topics)
    return tuple(topic for topic in found if topic.source not in ledger.sources)


def refuse_unless_next(ledger: Ledger, added: Ranges, *, attempt: str) -> None:
    """A batch must start exactly at the ledger's end: below it would double rows, above lose them."""
    for source, partitions in added.items():
        for partition, (start, _) in partitions.items():
            end = ledger.end(source, partition)
            if end is not None and end != start:
                raise SupersededError(table=ledger.table, seq=ledger.seq, attempt=attempt)


def _existing(ledger: Ledger, name: str, *, facts: ClusterFacts) -> TopicFacts:
    topic = facts.topics.get(name)
    if topic is None:
        raise TopicMissingError(table=ledger.table, topic=name)
    for source in ledger.sources:
        if topic_of(source) == name and source != topic.source:
            old_id = source.rpartition("@")[2]
            raise TopicRecreatedError(table=ledger.table, topic=name, old_id=old_id, new_id=topic.topic_id)
    return topic


def _starts(ledger: Ledger, topic: TopicFacts, *, first: Mapping[int, int]) -> dict[int, int]:
    starts = {}
    for partition, offsets in topic.partitions.items():
        end = ledger.end(topic.source, partition)
        start = first.get(partition, offsets.earliest) if end is None else end
        if not offsets.earliest <= start <= offsets.latest:
            raise OffsetsLostError(
                table=ledger.table,
                topic=topic.name,
                partition=partition,
                next_offset=start,
                earliest=offsets.earliest,
                latest=offsets.latest,
            )
        starts[partition] = start
    return starts

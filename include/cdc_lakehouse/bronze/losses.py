"""Which records of a table Kafka no longer holds although the table has not read them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from cdc_lakehouse.bronze.decided import Named, decision_text, require_what_stands
from cdc_lakehouse.bronze.incarnations import current_source
from cdc_lakehouse.errors import KafkaMovedError, OffsetsLostError
from cdc_lakehouse.kafka.facts import ClusterFacts, TopicFacts
from cdc_lakehouse.lake.ledger import Ledger, Ranges, incarnations, names_of, topic_of, unread
from cdc_lakehouse.lake.progress import Progress, Span

_NAME = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)/(?P<partition>[0-9]+):(?P<start>[0-9]+)-(?P<until>[0-9]+)")


def aged_out(ledger: Ledger, topics: Iterable[TopicFacts], sources: Mapping[str, str]) -> Ranges:
    """What retention removed between the ledger's end and Kafka's first record.

    A partition that appeared in a topic the table reads is owed from its first record on.
    """
    lost: dict[str, dict[int, Span]] = {}
    for topic in topics:
        known = ledger.sources.get(sources[topic.name])
        if known is None:
            continue
        _refuse_vanished_partitions(ledger, topic, known)
        for partition, offsets in topic.partitions.items():
            end = known[partition].end if partition in known else 0
            if offsets.earliest > end:
                lost.setdefault(sources[topic.name], {})[partition] = (end, offsets.earliest)
    return lost


def vanished(ledger: Ledger, facts: ClusterFacts) -> Ranges:
    """What was seen and not read of topics that are gone; a topic that was read whole is missed by nobody."""
    gone = {topic_of(source) for source in ledger.sources} - facts.topics.keys() - facts.silent.keys()
    return unread(ledger, (source for topic in gone if (source := current_source(ledger, topic)) is not None))


def having_seen(ledger: Ledger, remembered: Ranges, *, facts: ClusterFacts) -> Ledger:
    """Return the ledger that knows what an ingest that failed saw of topics that are gone since.

    Kafka cannot be asked for their ends any more, and no commit states them.
    """
    present = {topic.source for topic in facts.topics.values()}
    sources = {source: dict(partitions) for source, partitions in ledger.sources.items()}
    for source, partitions in remembered.items():
        if source in sources and source not in present and topic_of(source) not in facts.silent:
            for partition, (start, until) in partitions.items():
                progress = sources[source].get(partition) or Progress.begun(start, epoch=ledger.epoch)
                sources[source][partition] = progress.having_seen(until)
    return replace(ledger, sources=sources)


def held_behind(ledger: Ledger | None, topics: Iterable[TopicFacts]) -> Ranges:
    """Return what Kafka has of these topics behind the ledger's end, readable or not."""
    ranges: dict[str, dict[int, Span]] = {}
    for topic in topics:
        for partition, offsets in topic.partitions.items():
            end = None if ledger is None else ledger.end(topic.source, partition)
            start = offsets.earliest if end is None else end
            if start < offsets.latest:
                ranges.setdefault(topic.source, {})[partition] = (start, offsets.latest)
    return ranges


def is_given_up(ledger: Ledger, lost: Ranges, *, named: Named | None) -> bool:
    """Return whether a person gave up exactly what is `lost`; False where nothing is lost.

    Where nothing is lost, a decision about offsets that the table has passed was carried out before.
    Raises `OffsetsLostError` without a decision, `DecisionOutdatedError` where it names other offsets.
    """
    if named is None:
        if lost:
            raise OffsetsLostError(table=ledger.table, decision=decision_text(ledger.table, names_of(lost)))
        return False
    if not lost and named and all(has_passed(ledger, name) for name in named):
        return False
    require_what_stands("accept_gap", table=ledger.table, named=named, standing=names_of(lost))
    return bool(lost)


def go_on_behind(ledger: Ledger, lost: Ranges) -> Ledger:
    """Return the ledger that goes on behind `lost` and keeps it as a gap."""
    sources = {source: dict(partitions) for source, partitions in ledger.sources.items()}
    for source, partitions in lost.items():
        for partition, (start, until) in partitions.items():
            before = sources[source].get(partition) or Progress.begun(start, epoch=ledger.epoch)
            sources[source][partition] = before.skipped(until)
    return replace(ledger, sources=sources)


def has_passed(ledger: Ledger, name: str) -> bool:
    """Return whether an incarnation of the topic was read to the end of the named offsets."""
    match = _NAME.fullmatch(name)
    if match is None:
        return False
    partition, until = int(match["partition"]), int(match["until"])
    ends = (ledger.end(source, partition) for source in incarnations(ledger, match["topic"]))
    return any(end is not None and end >= until for end in ends)


def told(lost: Ranges) -> dict[str, dict[str, list[int]]]:
    """As a document tells them."""
    return {source: {str(p): list(span) for p, span in spans.items()} for source, spans in lost.items()}


def _refuse_vanished_partitions(ledger: Ledger, topic: TopicFacts, known: Mapping[int, Progress]) -> None:
    """A topic never gives a partition back while it keeps its id: the broker does not know everything yet."""
    missing = sorted(known.keys() - topic.partitions.keys())
    if missing:
        what = f"{topic.name} is listed without its partitions {', '.join(map(str, missing))}"
        raise KafkaMovedError(table=ledger.table, what=what)

"""What to read next, and whether a batch may be written: decisions on values, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from cdc_lakehouse.bronze.decided import NOTHING, Decided
from cdc_lakehouse.bronze.ending import describe_ending, end_reading, is_not_missed
from cdc_lakehouse.bronze.fill_plan import NO_FILL, FillPlan, plan_fill
from cdc_lakehouse.bronze.incarnations import sources_of
from cdc_lakehouse.bronze.losses import aged_out, go_on_behind, is_given_up, told, vanished
from cdc_lakehouse.bronze.start import NO_START, Start, Starts
from cdc_lakehouse.errors import (
    KafkaMovedError,
    SupersededError,
    TopicMissingError,
    TopicUnavailableError,
)
from cdc_lakehouse.kafka.facts import ClusterFacts, TopicFacts
from cdc_lakehouse.lake.ledger import (
    Ends,
    Ledger,
    Marks,
    Ranges,
    incarnation_of,
    incarnations,
    unread,
)
from cdc_lakehouse.lake.progress import Progress


@dataclass(frozen=True, slots=True)
class DrainPlan:
    """Read [start, until) of every partition; `until` is what Kafka held when it was asked."""

    table: str
    ledger: Ledger
    """Where the drain begins: what the table says, with what was decided about it."""
    topics: tuple[TopicFacts, ...]
    sources: Mapping[str, str]
    """Topic -> the incarnation under whose name a ledger keeps its records."""
    start: Mapping[str, Mapping[int, int]]
    """Topic -> partition -> offset, for every partition of every topic."""
    until: Mapping[str, Mapping[int, int]]
    amends: bool = False
    """`ledger` says more than the table's last commit: it has a commit of its own before any row."""
    version: int | None = None
    """Of the table that the plan was made for; what others did up to there was seen and judged."""
    fill: FillPlan = NO_FILL
    """Gaps to be read again, before what is new: retention takes them first."""

    @property
    def is_idle(self) -> bool:
        return self.start == self.until and not self.amends and not self.fill.held

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
        return {topic: incarnation_of(source) for topic, source in self.sources.items()}

    @property
    def planned(self) -> Ranges:
        """All that is to be read, of every partition, under the names that a ledger uses."""
        return {
            self.sources[topic]: {p: (start, self.until[topic][p]) for p, start in partitions.items()}
            for topic, partitions in self.start.items()
        }

    @property
    def unread(self) -> Ranges:
        """Offsets in Kafka that the table has not read, under the names that a ledger uses."""
        return self.added(self.start, self.until)

    @property
    def marks(self) -> Marks:
        """By which a later run notices that a log was cut.

        Of partitions with news: the others were not asked whether they are still the same (`doubtful`).
        """
        return {
            self.sources[topic.name]: {
                p: (offsets.latest, offsets.leader_epoch)
                for p, offsets in topic.partitions.items()
                if offsets.leader_epoch is not None and offsets.latest > self.start[topic.name][p]
            }
            for topic in self.topics
        }

    def added(self, start: Mapping[str, Mapping[int, int]], end: Mapping[str, Mapping[int, int]]) -> Ranges:
        """The ranges between two positions of this drain, under the names that a ledger uses.

        A partition without a start appeared after the plan was made. Spark begins it at its first record,
        which is at 0: it ends a drain with `failOnDataLoss` where that record is gone already.
        """
        moved = {
            self.sources[topic]: {
                partition: (first, until)
                for partition, until in partitions.items()
                if until > (first := start.get(topic, {}).get(partition, 0))
            }
            for topic, partitions in end.items()
        }
        return {name: partitions for name, partitions in moved.items() if partitions}


def plan_drain(
    ledger: Ledger,
    topics: tuple[str, ...],
    *,
    facts: ClusterFacts,
    start: Start = NO_START,
    decided: Decided = NOTHING,
    healed: Mapping[str, Any] | None = None,
    by_pattern: bool = False,
    turned: Ends | None = None,
) -> DrainPlan:
    """From the ledger's end to what Kafka holds now. Raises where that cannot be right.

    `start` says where topics begin that the table never read. `healed` is what was decided before about the
    ledger itself, and is not committed yet. Topics `by_pattern` come and go; the ones that are named must be
    there. `turned` is where the source went back below the ledger's end: there a person's epoch begins, else
    at the end.
    """
    after, ended = end_reading(ledger, facts, named=decided.stop_reading)
    ledger, decisions = after, {**(healed or {}), **ended}
    found = _require_topics(ledger, topics, facts=facts)
    epoch = decided.epoch_to_open(ledger)
    sources = sources_of(ledger, found, facts=facts, epoch=epoch)
    lost = {**aged_out(ledger, found, sources), **(vanished(ledger, facts) if by_pattern else {})}
    if is_given_up(ledger, lost, named=decided.accept_gap):
        after = go_on_behind(after, lost)
        decisions["accept_gap"] = told(lost)
    if epoch is not None:
        after, decisions["source_epoch"] = _in_epoch(
            after, epoch, found, sources=sources, first=start.offsets, turned=turned or {}
        )
        after = replace(after, cluster_id=facts.cluster_id)
    after, stated = _state_start(after, found, sources=sources, start=start)
    decisions |= stated
    if decisions:
        after = after.amended(after.sources, attempt="", decisions=decisions)
    return DrainPlan(
        table=ledger.table,
        ledger=after,
        topics=found,
        sources=sources,
        start={
            topic.name: _starts(after, topic, sources[topic.name], first=start.offsets) for topic in found
        },
        until={topic.name: {p: offsets.latest for p, offsets in topic.partitions.items()} for topic in found},
        amends=bool(decisions),
        fill=plan_fill(after, found, sources) if decided.fill_gaps else NO_FILL,
    )


def going_on(plan: DrainPlan, ledger: Ledger) -> DrainPlan:
    """What is left to read of a plan when its table stands at `ledger`."""
    start = {
        topic: {
            p: offset if (end := ledger.end(plan.sources[topic], p)) is None else end
            for p, offset in partitions.items()
        }
        for topic, partitions in plan.start.items()
    }
    return replace(plan, start=start)


def never_read(ledger: Ledger, topics: tuple[str, ...], *, facts: ClusterFacts) -> tuple[TopicFacts, ...]:
    """Topics that this table meets for the first time: the pipeline's `start` decides where it begins.

    A partition that appears later always starts at its first record: its keys moved there.
    """
    found = (facts.topics[topic] for topic in topics if topic in facts.topics)
    return tuple(topic for topic in found if not incarnations(ledger, topic.name))


def refuse_unless_next(ledger: Ledger, added: Ranges, *, attempt: str) -> None:
    """A batch must start exactly at the ledger's end: below it would double rows, above lose them."""
    for source, partitions in added.items():
        for partition, (start, _) in partitions.items():
            end = ledger.end(source, partition)
            if end is not None and end != start:
                raise SupersededError(table=ledger.table, seq=ledger.seq, attempt=attempt)


def refuse_other_topics(plan: DrainPlan, topic_ids: Mapping[str, str]) -> None:
    """Ids asked for after the records were read: an id that is still there was there all the while."""
    for topic in plan.topics:
        now = topic_ids.get(topic.name)
        if now != topic.topic_id:
            what = f"{topic.name} had the id {topic.topic_id} and now {now or 'is gone'}"
            raise KafkaMovedError(table=plan.table, what=what)


def _require_topics(ledger: Ledger, topics: Iterable[str], *, facts: ClusterFacts) -> tuple[TopicFacts, ...]:
    """Return Kafka's facts of the topics. Raises `TopicMissingError` for one that is gone and not ended."""
    return tuple(
        _found(ledger, topic, facts=facts)
        for topic in topics
        if not is_not_missed(ledger, topic, facts=facts)
    )


def _found(ledger: Ledger, name: str, *, facts: ClusterFacts) -> TopicFacts:
    if name in facts.silent:
        raise TopicUnavailableError(table=ledger.table, topic=name, reason=facts.silent[name])
    if name not in facts.topics:
        raise TopicMissingError(table=ledger.table, topic=name, decision=describe_ending(ledger, facts))
    return facts.topics[name]


def _in_epoch(
    ledger: Ledger,
    epoch: int,
    topics: tuple[TopicFacts, ...],
    *,
    sources: Mapping[str, str],
    first: Starts,
    turned: Ends,
) -> tuple[Ledger, dict[str, Any]]:
    """All records to come, and those from where the source `turned` back, belong to `epoch`.

    What is left behind of an older incarnation is missing.
    """
    going_on = {source for source in sources.values() if source in ledger.sources}
    read_before = {source for topic in sources for source in incarnations(ledger, topic)}
    left = unread(ledger, read_before - going_on)
    after = {source: dict(partitions) for source, partitions in go_on_behind(ledger, left).sources.items()}
    for source in going_on:
        at = turned.get(source, {})
        after[source] = {p: progress.in_epoch(epoch, at=at.get(p)) for p, progress in after[source].items()}
    begun = []
    for topic in topics:
        source = sources[topic.name]
        if source not in going_on:
            begun.append(source)
            starts = _starts(ledger, topic, source, first=first)
            after[source] = {p: Progress.begun(start, epoch=epoch) for p, start in starts.items()}
    decision = {"epoch": epoch, "begun": begun, "left": told(left)}
    back = {source: {str(p): at for p, at in turned[source].items()} for source in going_on & turned.keys()}
    return replace(ledger, sources=after), {**decision, **({"from": back} if back else {})}


def _state_start(
    ledger: Ledger, topics: tuple[TopicFacts, ...], *, sources: Mapping[str, str], start: Start
) -> tuple[Ledger, dict[str, Any]]:
    """Return the ledger that states where each topic begins that the table never read, and the decision.

    From then on every record behind these offsets has to be read: no later run moves the beginning.
    """
    after, offsets = dict(ledger.sources), dict[str, dict[str, int]]()
    for topic in topics if start.is_final else ():
        source = sources[topic.name]
        if topic.name not in start.offsets or source in after:
            continue
        starts = _starts(ledger, topic, source, first=start.offsets)
        after[source] = {
            p: Progress.begun(at, epoch=ledger.epoch).having_seen(topic.partitions[p].latest)
            for p, at in starts.items()
        }
        offsets[source] = {str(p): at for p, at in starts.items()}
    decision = {"start": {"setting": start.setting, "offsets": offsets}} if offsets else {}
    return replace(ledger, sources=after), decision


def _starts(ledger: Ledger, topic: TopicFacts, source: str, *, first: Starts) -> dict[int, int]:
    known, told = ledger.sources.get(source, {}), first.get(topic.name, {})
    return {
        partition: known[partition].end if partition in known else told.get(partition, offsets.earliest)
        for partition, offsets in topic.partitions.items()
    }

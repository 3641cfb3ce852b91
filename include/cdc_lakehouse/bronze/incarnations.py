"""Whether a topic is still the log that a table has read, and under which name its records come in.

A ledger keeps a topic by the id that Kafka gave it. Where the log is another one under the same id (its
end was lost, or the cluster was replaced by a copy), the source epoch that a person opens is added to the
id: one coordinate never means two records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cdc_lakehouse.errors import ClusterChangedError, DataError, LogCutError, TopicRecreatedError
from cdc_lakehouse.kafka.cut_logs import Mark
from cdc_lakehouse.kafka.facts import ClusterFacts, Place, TopicFacts
from cdc_lakehouse.lake.ledger import Ledger, incarnation_of, incarnations, source_of
from cdc_lakehouse.lake.progress import Span

_EPOCH_MARK = "~"


def sources_of(
    ledger: Ledger, topics: Iterable[TopicFacts], *, facts: ClusterFacts, epoch: int | None
) -> dict[str, str]:
    """Topic -> source of its next records. Raises a `DataError` where a person must open `epoch` first."""
    moved = _other_cluster(ledger, facts)
    if moved is not None and epoch is None:
        raise moved
    changed = moved is not None
    return {
        topic.name: _source(ledger, topic, cluster_changed=changed, cut=facts.cut, epoch=epoch)
        for topic in topics
    }


def doubtful(
    ledger: Ledger, topics: Iterable[str], *, facts: ClusterFacts, idle_too: bool = False
) -> dict[Place, Mark]:
    """Logs with news that had another leader since the table looked last: were they cut in between?

    A log that is shorter than the ledger needs no question, and one without news can wait for some, unless
    what lies below the ledger's end is to be read (`idle_too`).
    """
    found: dict[Place, Mark] = {}
    for name in topics:
        topic, current = facts.topics.get(name), current_source(ledger, name)
        if (
            topic is None
            or current is None
            or incarnation_of(current).partition(_EPOCH_MARK)[0] != topic.topic_id
        ):
            continue
        for partition, progress in ledger.sources[current].items():
            kept = topic.partitions.get(partition)
            if kept is None or progress.mark is None or kept.leader_epoch in (None, progress.mark[1]):
                continue
            offset = min(progress.mark[0], progress.end)
            if kept.earliest <= offset and (idle_too or progress.end < kept.latest):
                found[name, partition] = (offset, progress.mark[1])
    return found


def current_source(ledger: Ledger, topic: str) -> str | None:
    """The incarnation that the table read last."""
    return next(reversed(incarnations(ledger, topic)), None)


def _other_cluster(ledger: Ledger, facts: ClusterFacts) -> ClusterChangedError | None:
    if not ledger.sources or ledger.cluster_id in ("", facts.cluster_id):
        return None
    return ClusterChangedError(table=ledger.table, old_id=ledger.cluster_id, new_id=facts.cluster_id)


def _source(
    ledger: Ledger, topic: TopicFacts, *, cluster_changed: bool, cut: Mapping[Place, int], epoch: int | None
) -> str:
    current = current_source(ledger, topic.name)
    if current is None:
        return source_of(topic.name, topic.topic_id)
    moved = _recreated(ledger, current, topic) or _cut(ledger, current, topic, cut)
    if moved is None and not cluster_changed:
        return current
    if moved is not None and epoch is None:
        raise moved
    fresh = source_of(topic.name, topic.topic_id)
    return fresh if fresh not in ledger.sources else f"{fresh}{_EPOCH_MARK}{epoch}"


def _recreated(ledger: Ledger, current: str, topic: TopicFacts) -> DataError | None:
    old_id = incarnation_of(current).partition(_EPOCH_MARK)[0]
    if old_id == topic.topic_id:
        return None
    return TopicRecreatedError(
        table=ledger.table,
        topic=topic.name,
        old_id=old_id,
        new_id=topic.topic_id,
        read=_ranges({p: (progress.floor, progress.end) for p, progress in ledger.sources[current].items()}),
        held=_held(topic),
    )


def _cut(ledger: Ledger, current: str, topic: TopicFacts, anew: Mapping[Place, int]) -> DataError | None:
    """The end of a log does not go back, unless Kafka lost it."""
    cut = {
        partition: (progress.floor, progress.end)
        for partition, progress in ledger.sources[current].items()
        if partition in topic.partitions
        and (topic.partitions[partition].latest < progress.end or (topic.name, partition) in anew)
    }
    if not cut:
        return None
    from_offset = {p: offset for (name, p), offset in anew.items() if name == topic.name}
    held = _held(topic) + "".join(f"; {p} was written anew from {o}" for p, o in from_offset.items())
    return LogCutError(table=ledger.table, topic=topic.name, read=_ranges(cut), held=held)


def _held(topic: TopicFacts) -> str:
    return _ranges({p: (offsets.earliest, offsets.latest) for p, offsets in topic.partitions.items()})


def _ranges(partitions: Mapping[int, Span]) -> str:
    """`0 [5, 9), 1 [0, 3)`: by partition."""
    return (
        ", ".join(f"{p} [{start}, {until})" for p, (start, until) in sorted(partitions.items())) or "nothing"
    )

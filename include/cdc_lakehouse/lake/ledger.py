"""What a commit says about its table's progress: the document, and the arithmetic on it.

Rows present in bronze are `[floor, end)` minus `gaps` of every partition (`lake.progress`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeVar

from cdc_lakehouse import __version__
from cdc_lakehouse.errors import LedgerVersionError
from cdc_lakehouse.lake.applied import Applied
from cdc_lakehouse.lake.progress import Progress, Span
from cdc_lakehouse.lake.progress_document import document_of, progress_of
from cdc_lakehouse.lake.redo import Redo
from cdc_lakehouse.lake.valid_through import ValidThrough

T = TypeVar("T")
LEDGER_VERSION = 1
APPLICATION_ID = "cdc_lakehouse"
"""Delta transaction id whose version is `seq`: the fence of compare-and-set."""
LARGEST_EPOCH = 2**63 - 1
"""Silver keeps epochs in columns of 64 bits."""


class Kind(StrEnum):
    BRONZE = "bronze"
    SILVER = "silver"


Ranges = Mapping[str, Mapping[int, Span]]
"""`<topic>@<topic_id>` -> partition -> [from, until)."""
Ends = Mapping[str, Mapping[int, int]]
"""`<topic>@<topic_id>` -> partition -> offset."""
Marks = Mapping[str, Mapping[int, tuple[int, int] | None]]
"""`<topic>@<topic_id>` -> partition -> (offset, leader epoch), where Kafka tells it."""
Sources = Mapping[str, Mapping[int, Progress]]
"""`<topic>@<topic_id>` -> partition -> its progress."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """Progress of one table after one commit."""

    kind: Kind
    pipeline: str
    table: str
    cluster_id: str
    seq: int = 0
    attempt: str = ""
    sources: Sources = field(default_factory=dict)
    added: Ranges = field(default_factory=dict)
    decisions: Mapping[str, Any] = field(default_factory=dict)
    """What was decided with this one commit (`bronze.decided`, `bronze.standing`, `bronze.epochs`)."""
    redo: tuple[Redo, ...] = ()
    """Bronze's: rows that were decoded again and that silver may not have seen so yet."""
    redone: int = 0
    """Silver's: the step of bronze up to which it knows rows that were decoded again."""
    undecodable: tuple[int, int] = (0, 0)
    """Bronze's: undecodable records and all records of the last runs that count for the limit of the next
    one (`bronze.mass`)."""
    parked: bool = False
    """Silver's: whether it left out events of keys that are held (`on_quarantine: hold`)."""
    untold: int = 0
    """Bronze's: the newest step that led to other contents of a row and that no `redo` tells of any more."""
    stands_on: tuple[int, str] | None = None
    """Silver's: the version of bronze, and the attempt that committed it, whose rows it has applied."""
    passed_over: Mapping[str, Mapping[int, tuple[Span, ...]]] = field(default_factory=dict)
    """Silver's: where bronze had records that could not be decoded, and perhaps a few more."""
    applied: Applied = field(default_factory=Applied)
    """Silver's."""
    seen_through: str | None = None
    valid_through: ValidThrough | None = None
    ended: tuple[str, ...] = ()
    """Bronze's: sources whose reading a person ended. Their topics may be gone; one that exists is read."""
    counted: tuple[int, int] | None = None
    """The step behind which rows are counted, and how many drains and fills have committed since. Silver has
    that of the bronze whose rows it has applied. None for ledgers of earlier releases."""

    def advanced(
        self,
        added: Ranges,
        *,
        attempt: str,
        seen_through: str | None,
        planned: Ranges | None = None,
        marks: Marks | None = None,
    ) -> Ledger:
        """The ledger of the commit that adds `added` behind the end of each partition.

        `planned` is what the whole drain is to read, of every partition: those that have no record yet
        begin here too, so that none of their first ones can be missed later.
        """
        sources = {source: dict(partitions) for source, partitions in self.sources.items()}
        for ranges in (planned or {}, added):
            for source, spans in ranges.items():
                known = sources.setdefault(source, {})
                for partition, (start, until) in spans.items():
                    before = known.get(partition) or Progress.begun(start, epoch=self.epoch)
                    known[partition] = (
                        before.drained((start, until)) if ranges is added else before.having_seen(until)
                    )
        for source, partitions in (marks or {}).items():
            known = sources.get(source, {})
            known.update({p: known[p].marked(mark) for p, mark in partitions.items() if p in known})
        newest = max(filter(None, (self.seen_through, seen_through)), default=None)
        return replace(
            self,
            seq=self.seq + 1,
            attempt=attempt,
            sources=sources,
            added=added,
            decisions={},
            seen_through=newest,
            ended=tuple(source for source in self.ended if source not in added),
        )

    def counting(self, rows: int, *, behind: Ledger) -> Ledger:
        """Return the ledger of a commit that adds `rows` to the count of `behind`."""
        is_empty = not any(until > start for _, _, (start, until) in present(behind))
        step, known = behind.counted or (0 if is_empty else behind.seq, 0)
        return replace(self, counted=(step, known + rows))

    def amended(self, sources: Sources, *, attempt: str, decisions: Mapping[str, Any]) -> Ledger:
        """The ledger of a commit without rows, which says what was decided about this one."""
        return replace(
            self, seq=self.seq + 1, attempt=attempt, sources=sources, added={}, decisions=decisions
        )

    def redecoded(self, rows: int, within: Ranges, *, attempt: str, known: int) -> Ledger:
        """The ledger of the commit that gives rows other contents; silver knows all such steps to `known`."""
        step = self.seq + 1
        redo = (*(redo for redo in self.redo if redo.seq > known), Redo(step, attempt, rows, within))
        untold = max([self.untold, *(redo.seq for redo in self.redo if redo.seq <= known)])
        return replace(self, seq=step, attempt=attempt, added={}, decisions={}, redo=redo, untold=untold)

    @property
    def epoch(self) -> int:
        """The newest source epoch: that of every record to come."""
        return max((p.epoch for partitions in self.sources.values() for p in partitions.values()), default=0)

    def gaps(self) -> dict[str, dict[int, tuple[Span, ...]]]:
        """Source -> partition -> what is known to be missing."""
        found = {
            source: {partition: p.gaps for partition, p in partitions.items() if p.gaps}
            for source, partitions in self.sources.items()
        }
        return {source: partitions for source, partitions in found.items() if partitions}

    def end(self, source: str, partition: int) -> int | None:
        """The next offset to read; None for a partition that this table never read."""
        progress = self.sources.get(source, {}).get(partition)
        return None if progress is None else progress.end

    def to_json(self) -> str:
        return json.dumps(
            {
                "v": LEDGER_VERSION,
                "kind": self.kind,
                "seq": self.seq,
                "pipeline": self.pipeline,
                "table": self.table,
                "attempt": self.attempt,
                "cluster_id": self.cluster_id,
                "sources": {
                    source: {str(p): document_of(progress) for p, progress in partitions.items()}
                    for source, partitions in self.sources.items()
                },
                "added": {
                    source: {str(p): list(pair) for p, pair in partitions.items()}
                    for source, partitions in self.added.items()
                },
                "decisions": self.decisions,
                "redo": [redo.document() for redo in self.redo],
                "redone": self.redone,
                "undecodable": self.undecodable,
                "parked": self.parked,
                "untold": self.untold,
                "stands_on": self.stands_on,
                "passed_over": {
                    source: {str(p): [list(span) for span in spans] for p, spans in partitions.items()}
                    for source, partitions in self.passed_over.items()
                },
                "applied": self.applied.document(),
                "seen_through": self.seen_through,
                "valid_through": self.valid_through and self.valid_through.document(),
                "ended": self.ended,
                "counted": self.counted,
                "code_version": __version__,
            },
            sort_keys=True,
        )

    @classmethod
    def from_json(cls, text: str, *, table: str) -> Ledger | None:
        """None when `text` is not one of our documents; somebody else's metadata is not an error."""
        try:
            document = json.loads(text)
        except ValueError:
            return None
        if not isinstance(document, dict) or not {"v", "kind", "seq", "sources"} <= document.keys():
            return None
        if document["v"] != LEDGER_VERSION:
            raise LedgerVersionError(table=table, found=str(document["v"]), known=LEDGER_VERSION)
        return cls(
            kind=Kind(document["kind"]),
            pipeline=document["pipeline"],
            table=document["table"],
            cluster_id=document["cluster_id"],
            seq=document["seq"],
            attempt=document["attempt"],
            sources={
                source: {int(p): progress_of(progress) for p, progress in partitions.items()}
                for source, partitions in document["sources"].items()
            },
            added={
                source: {int(p): (pair[0], pair[1]) for p, pair in partitions.items()}
                for source, partitions in document["added"].items()
            },
            decisions=document.get("decisions", {}),
            redo=tuple(Redo.of_document(redo) for redo in document["redo"]),
            redone=document.get("redone", 0),
            undecodable=tuple(document.get("undecodable", (0, 0))),
            parked=document.get("parked", False),
            untold=document.get("untold", 0),
            stands_on=tuple(document["stands_on"]) if document.get("stands_on") else None,
            passed_over={
                source: {int(p): tuple((a, b) for a, b in spans) for p, spans in partitions.items()}
                for source, partitions in document.get("passed_over", {}).items()
            },
            applied=Applied.of_document(document.get("applied")),
            seen_through=document["seen_through"],
            valid_through=ValidThrough.of_document(document["valid_through"]),
            ended=tuple(document.get("ended", ())),
            counted=tuple(document["counted"]) if document.get("counted") else None,
        )


def transaction_ids(ledger: Ledger) -> dict[str, int]:
    """What a commit sets in Delta beside its document: the step, and the end of every partition."""
    ends = {
        partition_id(source, partition): progress.end
        for source, partitions in ledger.sources.items()
        for partition, progress in partitions.items()
    }
    return {APPLICATION_ID: ledger.seq, **ends}


def partition_id(source: str, partition: int) -> str:
    """The Delta transaction id whose version is the partition's end."""
    return f"{source}/{partition}"


def present(ledger: Ledger) -> Iterator[tuple[str, int, tuple[int, int]]]:
    """Every (source, partition, [from, until)) whose rows the table holds."""
    for source, partitions in ledger.sources.items():
        for partition, progress in partitions.items():
            for span in progress.present():
                yield source, partition, span


def by_topic(ranges: Mapping[str, Mapping[int, T]]) -> dict[str, dict[str, T]]:
    """As a result tells them: topic -> partition -> value. Incarnations of one topic by their whole names."""
    times = Counter(topic_of(source) for source in ranges)
    return {
        (source if times[topic_of(source)] > 1 else topic_of(source)): {
            str(partition): value for partition, value in partitions.items()
        }
        for source, partitions in ranges.items()
    }


def gaps_by_topic(ledger: Ledger) -> dict[str, dict[str, list[list[int]]]]:
    """As a result tells them."""
    told = {
        source: {partition: [list(gap) for gap in gaps] for partition, gaps in partitions.items()}
        for source, partitions in ledger.gaps().items()
    }
    return by_topic(told)


def source_of(topic: str, incarnation: str) -> str:
    """The name under which a ledger keeps one incarnation of a topic."""
    return f"{topic}@{incarnation}"


def incarnation_of(source: str) -> str:
    """`shop.public.orders@<id>` -> `<id>`: what the column `topic_id` of its rows holds."""
    return source.rpartition("@")[2]


def incarnations(ledger: Ledger, topic: str) -> list[str]:
    """Every source of this topic that the table ever read, oldest first: each has a higher epoch."""
    found = [source for source in ledger.sources if topic_of(source) == topic]
    return sorted(found, key=lambda source: (_first_epoch(ledger.sources[source]), source))


def first_incarnations(ledger: Ledger) -> frozenset[str]:
    """The sources that rows without a `topic_id` belong to: release 0.1.0 knew one incarnation."""
    return frozenset(incarnations(ledger, topic_of(source))[0] for source in ledger.sources)


def _first_epoch(partitions: Mapping[int, Progress]) -> int:
    return min((p.epochs[0][1] if p.epochs else 0 for p in partitions.values()), default=0)


def topic_of(source: str) -> str:
    """`shop.public.orders@<id>` -> `shop.public.orders`."""
    return source.rpartition("@")[0]


def has_ended(ledger: Ledger, topic: str | None = None) -> bool:
    """Return whether a person ended the reading of this topic; without one, of all that were ever read.

    The incarnation of a topic that was read last counts.
    """
    topics = topics_of(ledger) if topic is None else {topic}
    newest = [sources[-1] for name in topics if (sources := incarnations(ledger, name))]
    return bool(newest) and all(source in ledger.ended for source in newest)


def step_name(ledger: Ledger) -> str:
    """Return `step7`, at which a person saw the table whose reading ends."""
    return f"step{ledger.seq}"


def ending_decision(ledger: Ledger | None) -> str:
    """Return the decision that ends the reading, as a sentence prints it; empty where nothing was read."""
    if ledger is None or not ledger.sources:
        return ""
    return f"; stop_reading: `{ledger.table}={','.join(sorted(ending_names(ledger, unread(ledger))))}`"


def ending_names(ledger: Ledger, left: Ranges) -> frozenset[str]:
    """Return the names of an end of reading: the step that a person saw, and what is given up unread."""
    return frozenset({step_name(ledger), *names_of(left)})


def unread(ledger: Ledger, sources: Iterable[str] | None = None) -> Ranges:
    """Return what Kafka was seen to hold of `sources` behind the ledger's end; of all that are not ended."""
    if sources is None:
        newest = (incarnations(ledger, topic)[-1] for topic in topics_of(ledger))
        sources = [source for source in newest if source not in ledger.ended]
    ranges = {
        source: {p: span for p, progress in ledger.sources[source].items() if (span := progress.unread)}
        for source in sources
    }
    return {source: partitions for source, partitions in ranges.items() if partitions}


def names_of(ranges: Ranges) -> frozenset[str]:
    """Return `shop.public.orders/0:5-9` for offsets 5 to 8, and so on: a decision names exactly these."""
    return frozenset(
        f"{topic_of(source)}/{partition}:{start}-{until}"
        for source, partitions in ranges.items()
        for partition, (start, until) in partitions.items()
    )


def topics_of(ledger: Ledger) -> frozenset[str]:
    return frozenset(map(topic_of, ledger.sources))


def topics_with_records(ledger: Ledger) -> frozenset[str]:
    """Return the topics of which any offset was passed."""
    return frozenset(
        topic_of(source)
        for source, partitions in ledger.sources.items()
        if any(progress.end > progress.floor for progress in partitions.values())
    )

"""Batches of a table as the decision about source epochs sees them: records in, lines of workers out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from orders_in_kafka import SOURCE, TOPIC, ledger_of  # type: ignore[import-not-found]

from cdc_lakehouse.bronze.epochs import Decision, decide_epochs
from cdc_lakehouse.bronze.log_runs import LogRun
from cdc_lakehouse.bronze.written_file import SnapshotStart, Span, WrittenFile
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.progress import Progress

SECOND = "shop.public.orders_2"
SECOND_SOURCE = f"{SECOND}@id2"
SOURCES = {TOPIC: SOURCE}
BOTH = {**SOURCES, SECOND: SECOND_SOURCE}


@dataclass(frozen=True, slots=True)
class Read:
    """A row of a full snapshot."""

    tx_id: int | None


@dataclass(frozen=True, slots=True)
class Streamed:
    """An event behind `commit`; None where it does not know what was committed before."""

    commit: int | None
    lsn: int


@dataclass(frozen=True, slots=True)
class Other:
    """A tombstone, an undecodable record, a row of an incremental snapshot."""


OTHER = Other()
Record = Read | Streamed | Other
Places = Mapping[tuple[str, int], Sequence[Record]]


def line(topic: str, partition: int, first: int, records: Sequence[Record]) -> WrittenFile:
    """What the worker hands back that wrote `records`, the first of which has the offset `first`."""
    starts: dict[int, SnapshotStart] = {}
    runs: list[LogRun] = []
    for offset, record in enumerate(records, first):
        if isinstance(record, Read) and record.tx_id is not None:
            starts.setdefault(record.tx_id, SnapshotStart(topic, partition, record.tx_id, offset))
        elif isinstance(record, Streamed):
            spot = record.commit or 0, record.lsn
            knows_past = record.commit is not None
            run = LogRun(topic, partition, offset, offset, knows_past, record.lsn, begins=spot, ends=spot)
            joins = bool(runs) and runs[-1].knows_past == run.knows_past
            runs[-1:] = [runs[-1].joined(run)] if joins else [*runs[-1:], run]
    span = Span(topic, partition, first, first + len(records) - 1, len(records))
    return WrittenFile(
        name="f",
        size=1,
        modified=1,
        rows=len(records),
        spans=(span,),
        snapshots=tuple(starts.values()),
        log_runs=tuple(runs),
    )


@dataclass(slots=True)
class Bronze:
    """A table that takes batches; `ledger` is that of its newest commit."""

    ledger: Ledger
    sources: Mapping[str, str]
    decided: Decision | None = None

    @classmethod
    def empty(cls, sources: Mapping[str, str] = SOURCES) -> Bronze:
        return cls(ledger_of({}), sources)

    def end(self, topic: str, partition: int) -> int:
        return self.ledger.end(self.sources[topic], partition) or 0

    def takes(self, batch: Places, *, until: Mapping[tuple[str, int], int] | None = None) -> list[int]:
        """Commit `batch`, of a drain that goes until there, or ends with it; the epochs that were opened."""
        known = {
            (topic, partition): progress.end
            for topic, source in self.sources.items()
            for partition, progress in self.ledger.sources.get(source, {}).items()
        }
        ends = {place: self.end(*place) + len(records) for place, records in batch.items()}
        files = [line(*place, self.end(*place), records) for place, records in batch.items() if records]
        added: dict[str, dict[int, tuple[int, int]]] = {source: {} for source in self.sources.values()}
        planned: dict[str, dict[int, tuple[int, int]]] = {source: {} for source in self.sources.values()}
        for topic, partition in {**known, **ends, **(until or {})}:
            start = self.end(topic, partition)
            end = ends.get((topic, partition), start)
            if end > start:
                added[self.sources[topic]][partition] = (start, end)
            planned[self.sources[topic]][partition] = (
                start,
                max(end, (until or {}).get((topic, partition), 0)),
            )
        decision = decide_epochs(self.ledger, files, sources=self.sources, planned=planned, added=added)
        self.decided = decision
        after = decision.ledger.advanced(added, attempt="a", seen_through=None, planned=planned)
        after = replace(after, decisions=decision.told())
        self.ledger = Ledger.from_json(after.to_json(), table="orders") or after
        return [each.epoch for each in decision.opened]

    def progress(self, partition: int = 0, topic: str = TOPIC) -> Progress:
        return self.ledger.sources[self.sources[topic]][partition]

    def epochs(self, partition: int = 0, topic: str = TOPIC) -> list[int]:
        """Of every offset that is held."""
        progress = self.progress(partition, topic)
        return [progress.epoch_at(offset) for offset in range(progress.floor, progress.end)]


P0, P1, P2 = ((TOPIC, number) for number in range(3))


FIRST, AGAIN, THIRD = Read(30), Read(90), Read(95)
OLD, OLDER = Streamed(500, 510), Streamed(490, 500)
NEW = Streamed(900, 910)
UNKNOWN_PAST = Streamed(None, 905)
OF_AN_OPEN_TRANSACTION = Streamed(None, 400)


def streaming(*places: tuple[str, int]) -> Bronze:
    """After its first snapshot, with two rows in each partition."""
    bronze = Bronze.empty()
    bronze.takes({place: [FIRST, OLD] for place in places})
    return bronze

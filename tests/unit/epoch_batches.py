"""Batches of a table as the decision about source epochs sees them: records in, lines of workers out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
from orders_in_kafka import SOURCE, TOPIC, ledger_of  # type: ignore[import-not-found]

from cdc_lakehouse.bronze.epochs import Decision, decide_epochs
from cdc_lakehouse.bronze.log_runs import PositionColumns, chunk_runs, log_runs
from cdc_lakehouse.bronze.written_file import SnapshotStart, Span, WrittenFile
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.progress import Progress

SECOND = "shop.public.orders_2"
SECOND_SOURCE = f"{SECOND}@id2"
SOURCES = {TOPIC: SOURCE}
BOTH = {**SOURCES, SECOND: SECOND_SOURCE}


@dataclass(frozen=True, slots=True)
class Read:
    """A row of a full snapshot. `commit` is the one that the connector had come to, if it was streaming."""

    tx_id: int | None
    commit: int | None = None
    slot: int | None = None
    """Where a new slot begins in the log; if it is not given, at ten times the transaction."""

    @property
    def place(self) -> tuple[int, int] | None:
        if self.tx_id is None:
            return None
        begins = 10 * self.tx_id if self.slot is None else self.slot
        return (0, begins) if self.commit is None else (self.commit, self.commit)


@dataclass(frozen=True, slots=True)
class Streamed:
    """An event behind `commit`; None where it does not know what was committed before."""

    commit: int | None
    lsn: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """A row of an incremental snapshot, read behind this commit."""

    commit: int


@dataclass(frozen=True, slots=True)
class Other:
    """A tombstone, an undecodable record."""


OTHER = Other()
POSITION = pa.struct([(name, pa.int64()) for name in ("phase", "commit", "streamed", "row")])
Record = Read | Streamed | Chunk | Other
Places = Mapping[tuple[str, int], Sequence[Record]]


def line(
    topic: str, partition: int, first: int, records: Sequence[Record], *, apart_at: Sequence[int] = ()
) -> WrittenFile:
    """What the worker hands back that wrote `records`, the first of which has the offset `first`."""
    starts: dict[int, SnapshotStart] = {}
    for offset, record in enumerate(records, first):
        if isinstance(record, Read) and record.tx_id is not None:
            start = SnapshotStart(topic, partition, record.tx_id, offset, record.place)
            starts.setdefault(record.tx_id, start)
    offsets = np.arange(first, first + len(records))
    columns = PositionColumns.of(pa.array([_position(record) for record in records], POSITION))
    span = Span(topic, partition, first, first + len(records) - 1, len(records))
    return WrittenFile(
        name="f",
        size=1,
        modified=1,
        rows=len(records),
        spans=(span,),
        snapshots=tuple(starts.values()),
        log_runs=tuple(log_runs(topic, partition, offsets, columns, apart_at=apart_at)),
        chunk_runs=tuple(chunk_runs(topic, partition, offsets, columns, apart_at=apart_at)),
    )


def _position(record: Record) -> dict[str, int] | None:
    match record:
        case Read(place=(commit, row)):
            found = (0, commit, 0, row)
        case Streamed(commit, lsn):
            found = (1, commit or 0, 1, lsn)
        case Chunk(commit):
            found = (1, commit, 0, commit)
        case _:
            return None
    return dict(zip(POSITION.names, found, strict=True))


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
        decide = partial(decide_epochs, self.ledger, sources=self.sources, planned=planned, added=added)
        decision = decide(files)
        if decision.straddling:
            at = decision.straddling
            decision = decide(
                [line(*p, self.end(*p), some, apart_at=at.get(p, ())) for p, some in batch.items() if some]
            )
        self.decided = decision
        after = decision.ledger.advanced(added, attempt="a", seen_through=None, planned=planned)
        after = replace(after, decisions=decision.to_decisions())
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

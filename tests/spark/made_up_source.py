"""A database that never was: what its connector sends, in which partitions, and in which batches it is read.

Its tables are read again now and then, as the real connector does it (`cdc-semantics` §12.16): in chunks, by
a full snapshot that interrupts the stream, or behind a new slot, when changes were lost.

The source is sound: keys are unique, a row is inserted before it is updated, transactions follow each other.
What Kafka does to its events is not: they are sent again, truncates overtake rows, batches cut anywhere, and
the topic gets another partition, which some keys move to while what was sent of them before is not read yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

from cases.case_file import Case, CaseEvent, SourcePosition, Table  # type: ignore[import-not-found]

PARTITIONS = 3
LACKS = "__debezium_unavailable_value"
COLUMNS = {"id": "long", "note": "string", "big": "string"}
Row = dict[str, Any]


def made_up_case(name: str) -> Case:
    """What the writers of its records need to know."""
    return Case.model_construct(
        name=name, table=Table(key=("id",), columns=COLUMNS), events=(CaseEvent(at="0@0"),)
    )


@dataclass
class MadeUpSource:
    """Each call of `transaction` adds to `sent`; coordinates are given by `batches`."""

    random: Random
    keys: int = 12
    partitions: int = PARTITIONS - 1
    rows: dict[int, Row] = field(default_factory=dict)
    sent: list[tuple[int, CaseEvent]] = field(default_factory=list)
    """Partition and event, in the order in which they are sent."""
    lsn: int = 1_000
    commit: int | None = None
    told: int = 0
    clock: int = 0
    slot: int = 0
    """Where what it sends began in `sent`."""
    snapshots: list[int] = field(default_factory=list)
    """Where full snapshots begin in `sent`."""

    def run(self, transactions: int, *, read_again: float = 0.0) -> None:
        """`read_again` is how often a transaction is followed by a snapshot of some kind."""
        for number in range(transactions):
            self.partitions = PARTITIONS - 1 if number < transactions // 2 else PARTITIONS
            self.transaction()
            if self.random.random() < 0.12:
                self.crash()
            if self.random.random() < read_again:
                self.random.choice((self.chunks, self.interruption, self.new_slot))()

    def crash(self) -> None:
        """The connector sends its last events once more."""
        begins = max(self.slot, len(self.sent) - self.random.randint(1, 8))
        last = [event for _, event in self.sent[begins:] if event.position.snapshot == "false"]
        self.sent += [(self.partition_of(event.key), event) for event in last]

    def chunks(self) -> None:
        """Rows of an incremental snapshot, of all keys or some."""
        for key in sorted(self.rows):
            if self.random.random() < 0.6:
                place = SourcePosition(
                    snapshot="incremental", sequence=(self.commit, self.lsn), ts=self.time()
                )
                self.send(self.event("r", key, dict(self.rows[key])), place)

    def interruption(self) -> None:
        """A full snapshot by signal: what is committed while the connector stands still is in it, and comes
        behind it, too."""
        begins, commit = len(self.sent), self.commit
        if commit is None:
            return
        for _ in range(self.random.randint(0, 2)):
            self.transaction()
        behind, self.sent = self.sent[begins:], self.sent[:begins]
        self.snapshot((commit, commit))
        self.sent += behind

    def new_slot(self) -> None:
        """The connector lost its slot, and with it what was changed meanwhile."""
        begins = len(self.sent)
        for _ in range(self.random.randint(0, 3)):
            self.transaction()
        if self.rows:  # of an empty table no row says that it was read
            self.sent = self.sent[:begins]
            self.slot, self.commit = begins, None
            self.lsn += 10
            self.snapshot((None, self.lsn))

    def snapshot(self, sequence: tuple[int | None, int]) -> None:
        keys, tx, time = list(self.rows), self.lsn + 1, self.time()
        if keys:
            self.snapshots.append(len(self.sent))
        for key in keys:
            marker = "last" if key == keys[-1] else "true"
            place = SourcePosition(snapshot=marker, sequence=sequence, lsn=sequence[1], tx=tx, ts=time)
            self.send(self.event("r", key, dict(self.rows[key])), place)

    def send(self, event: CaseEvent, place: SourcePosition) -> None:
        self.sent.append((self.partition_of(event.key), event.model_copy(update={"position": place})))

    def time(self) -> int:
        """Of a clock that is set back now and then."""
        self.clock += self.random.choice((0, 10, 10, 10, -25))
        return self.clock

    def transaction(self) -> None:
        tx, self.order, time = self.lsn, 0, self.time()
        begun, touched = self.commit, set()
        for _ in range(self.random.randint(1, 4)):
            key = self.random.randrange(self.keys)
            for event in self.change(key):
                self.lsn += 10
                self.order += 1
                place = SourcePosition(
                    sequence=(begun, self.lsn), lsn=self.lsn, tx=tx, order=self.order, ts=time
                )
                self.send(event, place)
                touched.add(key)
        self.lsn += 10
        self.commit = self.lsn

    def partition_of(self, key: Row | None) -> int:
        return self.random.randrange(self.partitions) if key is None else int(key["id"]) % self.partitions

    def change(self, key: int) -> Iterator[CaseEvent]:
        chance = self.random.random()
        if chance < 0.02:
            self.rows.clear()
            yield CaseEvent(at="0@0", op="t")
        elif key not in self.rows:
            self.rows[key] = {"id": key, "note": self.value("n", of=2), "big": self.value("b", of=99)}
            yield self.event("c", key, dict(self.rows[key]))
        elif chance < 0.2:
            del self.rows[key]
            yield self.event("d", key, None)
        elif chance < 0.3:
            yield from self.key_change(key, self.random.randrange(self.keys))
        else:
            yield self.update(key)

    def update(self, key: int) -> CaseEvent:
        row = self.rows[key]
        row["note"] = self.value("n", of=2)
        if self.random.random() < 0.5:
            row["big"] = self.value("b", of=99)
            return self.event("u", key, dict(row))
        return self.event("u", key, {**row, "big": LACKS})

    def key_change(self, old: int, new: int) -> Iterator[CaseEvent]:
        if new in self.rows:
            return
        row = {**self.rows.pop(old), "id": new}
        self.rows[new] = row
        self.lsn += 10
        yield self.event("d", old, None)
        self.lsn -= 10  # both stand at one place in the log
        yield self.event("c", new, {**row, "big": LACKS})

    def event(self, op: str, key: int, after: Row | None) -> CaseEvent:
        return CaseEvent(at="0@0", op=op, key={"id": key}, after=after)

    def value(self, kind: str, *, of: int) -> str:
        self.told += 1
        return f"{kind}{self.told % of}" if of < 10 else f"{kind}{self.told}"


def batches(source: MadeUpSource, random: Random, *, count: int) -> list[list[CaseEvent]]:
    """What has been sent, cut at random places in each partition, each with its coordinate."""
    partitions: dict[int, list[CaseEvent]] = {number: [] for number in range(PARTITIONS)}
    for partition, event in source.sent:
        at = f"{partition}@{len(partitions[partition])}"
        partitions[partition].append(event.model_copy(update={"at": at}))
    cuts = {
        number: [0, *sorted(random.randint(0, len(log)) for _ in range(count - 1)), len(log)]
        for number, log in partitions.items()
    }
    return [
        [event for number, log in partitions.items() for event in log[cuts[number][b] : cuts[number][b + 1]]]
        for b in range(count)
    ]


def drains(source: MadeUpSource, random: Random, *, count: int) -> list[list[CaseEvent]]:
    """What had been sent by some moments, each with its coordinate; no drain meets two full snapshots."""
    ends = {random.randint(1, len(source.sent)) for _ in range(count)}
    ends |= {len(source.sent), *(random.randint(a + 1, b) for a, b in pairwise(source.snapshots))}
    offsets = dict.fromkeys(range(PARTITIONS), 0)
    found, begins = [], 0
    for end in sorted(ends):
        batch = []
        for partition, event in source.sent[begins:end]:
            batch.append(event.model_copy(update={"at": f"{partition}@{offsets[partition]}"}))
            offsets[partition] += 1
        found.append(sorted(batch, key=lambda event: event.coordinate))
        begins = end
    return found

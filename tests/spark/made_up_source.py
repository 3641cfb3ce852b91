"""A database that never was: what its connector sends, in which partitions, and in which batches it is read.

The source is sound: keys are unique, a row is inserted before it is updated, transactions follow each other.
What Kafka does to its events is not: they are sent again, truncates overtake rows, batches cut anywhere, and
the topic gets another partition, which some keys move to while what was sent of them before is not read yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
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

    def run(self, transactions: int) -> None:
        for number in range(transactions):
            self.partitions = PARTITIONS - 1 if number < transactions // 2 else PARTITIONS
            self.transaction()
            if self.random.random() < 0.12:
                self.crash()

    def crash(self) -> None:
        """The connector sends its last events once more."""
        last = [event for _, event in self.sent[-self.random.randint(1, 8) :]]
        self.sent += [(self.partition_of(event.key), event) for event in last]

    def transaction(self) -> None:
        tx, self.order = self.lsn, 0
        begun, touched = self.commit, set()
        for _ in range(self.random.randint(1, 4)):
            key = self.random.randrange(self.keys)
            for event in self.change(key):
                self.lsn += 10
                self.order += 1
                place = SourcePosition(sequence=(begun, self.lsn), lsn=self.lsn, tx=tx, order=self.order)
                partition = self.partition_of(event.key)
                self.sent.append((partition, event.model_copy(update={"position": place})))
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

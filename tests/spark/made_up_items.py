"""A source of `items` that never was: at every moment its codes are unique, and rows take them over.

What Kafka does to its events is as bad as it may be: they are sent again, lie in any partition where they
have no key, and batches cut anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from cases.case_file import Case, CaseEvent, SourcePosition, Table  # type: ignore[import-not-found]
from cases.encoding import Writer, writers  # type: ignore[import-not-found]

PARTITIONS = 2
CODES = "abcdefgh"
Row = dict[str, Any]


def writer_of(*key: str, code: str = "string!", first_id: int = 100) -> Writer:
    """Of a table `items (id, code NOT NULL, note)` with this message key."""
    columns = {"id": "long", "code": code, "note": "string"}
    table = Table(key=key, columns=columns)
    case = Case.model_construct(name="items", table=table, events=(CaseEvent(at="0@0"),))
    return writers(case, first_id=first_id)[1]


@dataclass
class MadeUpItems:
    """Each call of `transaction` adds to `sent`; `batches` of `made_up_source` gives the coordinates."""

    random: Random
    has_key: bool
    rows: dict[int, Row] = field(default_factory=dict)
    sent: list[tuple[int, CaseEvent]] = field(default_factory=list)
    """Partition and event, in the order in which they are sent."""
    lsn: int = 1_000
    told: int = 0

    def run(self, transactions: int) -> None:
        for _ in range(transactions):
            self.transaction()
            if self.random.random() < 0.12:
                self.sent += self.sent[-self.random.randint(1, 8) :]

    def transaction(self) -> None:
        tx = begun = self.lsn
        for order in range(1, self.random.randint(1, 4) + 1):
            for event in self.change(self.random.randrange(10)):
                self.lsn += 10
                place = SourcePosition(sequence=(begun, self.lsn), lsn=self.lsn, tx=tx, order=order)
                any_partition = self.random.randrange(PARTITIONS)
                partition = event.key["id"] % PARTITIONS if event.key else any_partition
                self.sent.append((partition, event.model_copy(update={"position": place})))
        self.lsn += 10

    def change(self, number: int) -> Iterator[CaseEvent]:
        chance, row = self.random.random(), self.rows.get(number)
        free = sorted({*CODES} - {each["code"] for each in self.rows.values()})
        if chance < 0.02:
            self.rows.clear()
            yield CaseEvent(at="0@0", op="t")
        elif row is None:
            if free:
                yield self.event("c", number, code=self.random.choice(free))
        elif chance < 0.3:
            yield self.event("d", number)
        elif chance < 0.6 and free:
            yield self.event("u", number, code=self.random.choice(free))
        else:
            yield self.event("u", number, code=row["code"])

    def event(self, op: str, number: int, *, code: str | None = None) -> CaseEvent:
        self.told += 1
        before = self.rows.pop(number, None)
        after = None if code is None else {"id": number, "code": code, "note": f"n{self.told}"}
        if after is not None:
            self.rows[number] = after
        key = {"id": number} if self.has_key else None
        return CaseEvent(at="0@0", op=op, key=key, before=before, after=after)

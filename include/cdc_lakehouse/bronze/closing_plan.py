"""Which undecodable records a person means whose cases are to be closed: decisions on values, no I/O."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cdc_lakehouse.avro.faults import AvroFault, SchemaFault, ValueFault
from cdc_lakehouse.debezium.faults import EventFault
from cdc_lakehouse.errors import CaseUnknownError
from cdc_lakehouse.lake.ledger import Sources, topic_of

_CODES = frozenset(map(str, (*AvroFault, *SchemaFault, *ValueFault, *EventFault)))
_COORDINATE = re.compile(r"(?P<topic>.+)/(?P<partition>\d+)@(?P<offset>\d+)")


@dataclass(frozen=True, slots=True)
class Case:
    topic: str
    partition: int
    offset: int
    code: str
    closed: bool = False

    @property
    def coordinate(self) -> str:
        return f"{self.topic}/{self.partition}@{self.offset}"


@dataclass(frozen=True, slots=True)
class Meant:
    """Codes mean all records that have them now, coordinates one record each."""

    codes: frozenset[str] = frozenset()
    coordinates: frozenset[tuple[str, int, int]] = frozenset()

    @classmethod
    def by(cls, asked: Iterable[str]) -> Meant:
        found = {what: _COORDINATE.fullmatch(what) for what in asked}
        return cls(
            codes=frozenset(what for what, place in found.items() if place is None),
            coordinates=frozenset(
                (place["topic"], int(place["partition"]), int(place["offset"]))
                for place in found.values()
                if place is not None
            ),
        )

    def could_be_of(self, read: Sources) -> bool:
        """Whether these are codes that there are, and places that a table has `read`."""
        ends = {
            (topic_of(source), partition): progress.end
            for source, partitions in read.items()
            for partition, progress in partitions.items()
        }
        return self.codes <= _CODES and all(
            offset < ends.get((topic, partition), 0) for topic, partition, offset in self.coordinates
        )

    def has(self, case: Case) -> bool:
        return case.code in self.codes or (case.topic, case.partition, case.offset) in self.coordinates


@dataclass(frozen=True, slots=True)
class ClosingPlan:
    close: Meant
    reopen: Meant
    closed: int
    """Records whose cases are open, and will not be."""
    reopened: int


def plan_closing(
    table: str, held: Sequence[Case], *, read: Sources, close: Sequence[str], reopen: Sequence[str]
) -> ClosingPlan:
    """`held` are all undecodable records of the table, which has `read` so far.

    What is asked for and done already is fine: a retry finds it so. A record whose case was reopened may even
    be decoded by then. What means no record at all is refused.
    """
    for what in (*close, *reopen):
        one = Meant.by([what])
        may_be_decoded = what not in close and one.could_be_of(read)
        if not may_be_decoded and not any(one.has(case) for case in held):
            raise CaseUnknownError(table=table, asked=what, held=", ".join(_in_words(held)) or "none")
    to_close, to_reopen = Meant.by(close), Meant.by(reopen)
    return ClosingPlan(
        close=to_close,
        reopen=to_reopen,
        closed=sum(not case.closed and to_close.has(case) for case in held),
        reopened=sum(case.closed and to_reopen.has(case) for case in held),
    )


def _in_words(held: Sequence[Case]) -> Iterator[str]:
    """`bad_frame 3, first shop.public.orders/0@17`, the most frequent first."""
    for (code, closed), count in Counter((case.code, case.closed) for case in held).most_common():
        first = min((c.topic, c.partition, c.offset) for c in held if (c.code, c.closed) == (code, closed))
        state = "closed, " if closed else ""
        yield f"{code} {count} ({state}first {first[0]}/{first[1]}@{first[2]})"

"""What a source's connector has confirmed, and how far Kafka went then: a memory of true observations.

A connector confirms a position once Kafka has acknowledged all records of the changes before it. So the ends
of Kafka's partitions that are asked for *after that* are what a table must have read to have every change up
to this position (decision 0033). An observation is true whenever it was made: whoever writes last does no
harm, and a memory that is lost costs what the next two runs observe again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from cdc_lakehouse.database.positions import LogPosition
from cdc_lakehouse.database.slots import SlotLook, confirmed_by
from cdc_lakehouse.lake.ledger import Ends

MOST = 6
"""Confirmations: silver may lag some runs behind."""
MOST_MOMENTS = 60


@dataclass(frozen=True, slots=True)
class Moment:
    at: datetime
    """By the source's clock."""
    position: LogPosition
    """What a reader of the source saw then stands below."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads a slot."""

    number: int
    since: LogPosition
    """Where the log was written to when it was seen for the first time."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What one table has to have read, and in which source epoch it was when that was asked."""

    epoch: int
    ends: Ends


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Who has read `reach` has every change up to `position`."""

    position: LogPosition
    time: datetime | None
    """The newest known moment that does not lie above `position`."""
    reach: Mapping[str, Reach]
    """By table."""


@dataclass(frozen=True, slots=True)
class Confirmations:
    """Of the tables of one group."""

    address: str = ""
    """Of the source: positions of two of them cannot be compared."""
    moments: tuple[Moment, ...] = ()
    """Oldest first, and so are the others."""
    readers: Mapping[str, Reader] = field(default_factory=dict)
    """By slot."""
    known: tuple[Confirmation, ...] = ()

    def having_seen(self, look: SlotLook, *, address: str) -> Confirmations:
        """With the look's moment. Another source begins from nothing."""
        before = self if self.address == address else Confirmations(address)
        readers = {}
        for slot in look.slots:
            if slot.active and slot.reader is not None:
                earlier = before.readers.get(slot.name)
                same = earlier is not None and earlier.number == slot.reader
                readers[slot.name] = earlier if earlier and same else Reader(slot.reader, look.position)
        moments = (*before.moments, Moment(look.at, look.position))
        return replace(before, moments=_thinned(moments), readers=readers)

    def confirmed_in(self, look: SlotLook) -> LogPosition | None:
        """What Kafka has all changes up to, by a look that was seen; None where nobody can know.

        A connector that has just begun may still be bringing a snapshot, whose rows stand before its first
        change, while its slot stands where the log will begin. So a slot counts once its reader has confirmed
        something of after it was first seen reading.
        """
        confirmed = confirmed_by(look.slots)
        if confirmed is None:
            return None
        for slot in look.slots:
            reader = self.readers.get(slot.name)
            if reader is None or slot.confirmed is None or slot.confirmed <= reader.since:
                return None
        return confirmed

    def time_at(self, position: LogPosition) -> datetime | None:
        return max((each.at for each in self.moments if each.position <= position), default=None)

    def with_reach(self, position: LogPosition, reach: Mapping[str, Reach]) -> Confirmations:
        """`reach` was asked for after `position` was confirmed."""
        fresh = Confirmation(position, self.time_at(position), reach)
        return replace(self, known=(*self.known, fresh)[-MOST:])

    def of(self, table: str) -> Iterator[Confirmation]:
        """Those that say something about the table, newest first."""
        return (each for each in reversed(self.known) if table in each.reach)


def _thinned(moments: tuple[Moment, ...]) -> tuple[Moment, ...]:
    """Every second one of the older half goes: a connector that lags for hours still meets one of them."""
    if len(moments) <= MOST_MOMENTS:
        return moments
    half = len(moments) // 2
    return (*moments[:half:2], *moments[half:])

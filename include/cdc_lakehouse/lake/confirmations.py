"""What a source's connector has committed, and how far Kafka went then: a memory of true observations.

Connect commits the offset of a change once Kafka has acknowledged every record before it. So the ends of
Kafka's partitions that are asked for *after that* are what a table must have read to have every change up to
this position (decision 0033). An observation is true whenever it was made: whoever writes last does no harm,
and a memory that is lost is made again by the next runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from cdc_lakehouse.database.positions import LogPosition, Moment
from cdc_lakehouse.lake.ledger import Ends

MOST = 6
"""Observations: silver may lag some runs behind."""
MOST_MOMENTS = 60


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Of one table: who has read to `ends` has every change up to `position`."""

    position: LogPosition
    time: datetime | None
    """The newest known moment that does not lie above `position`."""
    epoch: int
    """The table's source epoch when it was observed."""
    ends: Ends


def lacking_since(moments: Iterable[Moment], position: LogPosition | None) -> datetime | None:
    """Return the oldest moment of which a table that has everything up to `position` lacks something.

    None where it lacks nothing that is known; a table without a position lacks all. `moments`: oldest first.
    """
    return next((each.at for each in moments if position is None or each.position > position), None)


@dataclass(frozen=True, slots=True)
class Confirmations:
    """Of the tables of one group."""

    address: str = ""
    """Of the source: positions of two of them cannot be compared."""
    moments: tuple[Moment, ...] = ()
    """Oldest first, and so are the observations."""
    known: tuple[Mapping[str, Confirmation], ...] = ()
    """By table."""

    def having_seen(self, moment: Moment, *, address: str) -> Confirmations:
        """Another source begins from nothing, and so does one whose log went back: it was restored, or a
        standby took over that did not have all of it."""
        goes_on = self.address == address and not any(m.position > moment.position for m in self.moments)
        before = self if goes_on else Confirmations(address)
        return replace(before, moments=_thinned((*before.moments, moment)))

    def time_at(self, position: LogPosition) -> datetime | None:
        return max((each.at for each in self.moments if each.position <= position), default=None)

    def observing(self, found: Mapping[str, Confirmation]) -> Confirmations:
        return replace(self, known=(*self.known, found)[-MOST:]) if found else self

    def of(self, table: str) -> Iterator[Confirmation]:
        """Those that say something about the table, newest first."""
        return (each[table] for each in reversed(self.known) if table in each)


def _thinned(moments: tuple[Moment, ...]) -> tuple[Moment, ...]:
    """Every second one of the older half goes: a connector that lags for hours still meets one of them."""
    if len(moments) <= MOST_MOMENTS:
        return moments
    half = len(moments) // 2
    return (*moments[:half:2], *moments[half:])

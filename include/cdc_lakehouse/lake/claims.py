"""Whether a table may say up to when it is complete: decisions on values, no I/O (decision 0033)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from cdc_lakehouse.database.positions import LogPosition
from cdc_lakehouse.lake.confirmations import Confirmation
from cdc_lakehouse.lake.ends import has_read, is_of_the_past
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.place import Place
from cdc_lakehouse.lake.progress import Progress
from cdc_lakehouse.lake.valid_through import ValidThrough


class Withheld(StrEnum):
    """Why a table does not say it: it knows that something is missing, or cannot know."""

    GAPS = "gaps"
    UNDECODABLE = "undecodable records"
    PARKED = "parked events"
    BEGAN_ANEW = "the source began anew, and no full snapshot since is complete"
    BEGINS_LATE = "the first records of its log were gone when it began"
    NOT_CONFIRMED = "nobody said what the connector has committed, or the table has not read so far"


@dataclass(frozen=True, slots=True)
class Claim:
    """What a table says; one of the two is None."""

    valid: ValidThrough | None
    withheld: Withheld | None

    @classmethod
    def of(cls, valid: ValidThrough | None) -> Claim:
        return cls(valid, None if valid is not None else Withheld.NOT_CONFIRMED)

    def told(self) -> dict[str, Any]:
        """Fields of a result."""
        valid = self.valid
        return {
            "valid_through": valid and valid.time,
            "valid_position": valid and valid.position,
            "valid_lag_seconds": valid and valid.lag_seconds(),
            "withheld": self.withheld and str(self.withheld),
        }


def claim_of_bronze(ledger: Ledger, confirmations: Iterable[Confirmation]) -> Claim:
    """Bronze has every record, decoded or not, unless it knows of gaps."""
    if ledger.gaps():
        return Claim(None, Withheld.GAPS)
    return Claim.of(_newest(ledger, confirmations, epoch=ledger.epoch))


def claim_of_silver(
    ledger: Ledger, confirmations: Iterable[Confirmation], *, bronze: Ledger, open_cases: int
) -> Claim:
    """Of a silver that has applied what `bronze` holds; `open_cases` wait in there to be decoded."""
    withheld = _lacking(ledger, bronze, open_cases=open_cases)
    if withheld is not None:
        return Claim(None, withheld)
    return Claim.of(_newest(ledger, confirmations, epoch=bronze.epoch))


def _lacking(silver: Ledger, bronze: Ledger, *, open_cases: int) -> Withheld | None:
    cleared = silver.applied.cleared
    partitions = [each for found in bronze.sources.values() for each in found.values()]
    if silver.gaps():
        return Withheld.GAPS
    if open_cases:
        return Withheld.UNDECODABLE
    if silver.parked:
        return Withheld.PARKED
    if any(epoch > _epoch_of(cleared) for each in partitions for epoch in _begun_within(each)):
        return Withheld.BEGAN_ANEW
    if any(each.floor > 0 and not any(_begun_within(each)) for each in partitions):
        return Withheld.BEGINS_LATE
    return None


def _begun_within(progress: Progress) -> list[int]:
    """Epochs that begin behind a record that the table has read: with them the log goes on as another one.

    A full snapshot that is complete heals that, and what was gone before the table's first record too: every
    row of it stands behind that record.
    """
    return [epoch for start, epoch in progress.epochs if start > progress.floor]


def _epoch_of(cleared: Place | None) -> int:
    """Before it nothing counts any more: a full snapshot that is complete, or a truncate, stands there."""
    return 0 if cleared is None else cleared.position[0]


def _newest(ledger: Ledger, confirmations: Iterable[Confirmation], *, epoch: int) -> ValidThrough | None:
    """It never goes back but for a new source epoch, which empties it."""
    before = ledger.valid_through
    if before is not None and before.epoch != epoch:
        before = None
    found = next((each for each in confirmations if _is_met(ledger, each, epoch=epoch)), None)
    if found is None or (before is not None and found.position <= LogPosition.from_text(before.position)):
        return before
    return ValidThrough(str(found.position), _later(found.time, before), epoch)


def _is_met(ledger: Ledger, found: Confirmation, *, epoch: int) -> bool:
    ends = found.ends
    return found.epoch == epoch and has_read(ledger, ends) and not is_of_the_past(ledger, ends)


def _later(time: datetime | None, before: ValidThrough | None) -> str | None:
    """A memory that was lost may know an older moment than the table does."""
    told = None if time is None else time.isoformat()
    known = None if before is None else before.time
    if told is None or known is None:
        return told or known
    return max(told, known, key=datetime.fromisoformat)

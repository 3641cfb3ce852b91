"""What the replication slots of a source say of the connector that reads its log: values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cdc_lakehouse.database.positions import LogPosition


@dataclass(frozen=True, slots=True)
class Slot:
    name: str
    active: bool
    """Whether somebody reads it now."""
    confirmed: LogPosition | None
    reader: int | None = None
    """The process of the source that sends to whoever reads it: another one for each who begins to read."""


@dataclass(frozen=True, slots=True)
class SlotLook:
    at: datetime
    """By the source's clock."""
    position: LogPosition
    """Where its log was written to right after: what a reader of the source saw at `at` stands below."""
    slots: tuple[Slot, ...]
    """As they were after that."""
    relations: frozenset[str]
    """Those of the asked ones that the source has."""


def confirmed_by(slots: tuple[Slot, ...]) -> LogPosition | None:
    """What Kafka has acknowledged to the connector up to here; None where nobody tells it.

    A slot that nobody reads says nothing: a connector that takes its first snapshot has not begun with
    the log, and what it confirmed is where the log will begin.
    """
    known = [slot.confirmed for slot in slots if slot.active and slot.confirmed is not None]
    return min(known) if known and len(known) == len(slots) else None

"""Up to which position of the source's log Kafka holds everything, and where its partitions ended then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from cdc_lakehouse.config.models import Table
from cdc_lakehouse.database.access import Database, confirmed_by
from cdc_lakehouse.lake.confirmations_file import read_confirmations
from cdc_lakehouse.lake.ledger import Ends
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.verification.subject import Subject
from cdc_lakehouse.verification.verdict import Delivery, OpenKey, delivered

AskEnds = Callable[[str], Ends]
"""How far Kafka goes with a topic, now."""


@dataclass(frozen=True, slots=True)
class Deliveries:
    """What every ingest observes (decision 0033); the slot only for tables of which nobody observes anything.

    A slot may run ahead of records that a partition does not take, so by its word a late row may be called
    wrong.
    """

    lake: Lake
    database: Database
    ends: AskEnds

    def told_before(self, keys: Iterable[OpenKey], table: Table, subject: Subject) -> tuple[OpenKey, ...]:
        """The same keys, with what was observed since."""
        return delivered(keys, self._observed(table, subject))

    def told_after(self, keys: Sequence[OpenKey], table: Table, subject: Subject) -> tuple[OpenKey, ...]:
        """The same keys, with what the slot says now where nothing is ever observed.

        Asked for in this order: first what the connector has delivered, then how far Kafka goes.
        """
        waiting = [key.since.mark for key in keys if key.since.ends is None]
        if not waiting or self._observed(table, subject):
            return tuple(keys)
        confirmed = confirmed_by(self.database.slots())
        if confirmed is None or confirmed < min(waiting):
            return tuple(keys)
        return delivered(keys, [Delivery(confirmed, self.ends(subject.topic))])

    def _observed(self, table: Table, subject: Subject) -> list[Delivery]:
        """Oldest first. Positions of another source, or of one before it was restored, say nothing."""
        known = read_confirmations(self.lake.confirmations(table.group))
        if known.address != self.database.settings.address:
            return []
        found = (each for each in known.of(table.name) if each.epoch == subject.ledger.epoch)
        return [Delivery(each.position, each.ends) for each in found][::-1]

"""Up to which position of the source's log Kafka holds everything, and where its partitions ended then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from cdc_lakehouse.config.models import Table
from cdc_lakehouse.database.access import Database, confirmed_by
from cdc_lakehouse.database.positions import LogPosition
from cdc_lakehouse.lake.confirmations import Confirmation
from cdc_lakehouse.lake.confirmations_file import read_confirmations
from cdc_lakehouse.lake.ledger import Ends
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.verification.subject import Subject
from cdc_lakehouse.verification.verdict import Delivery, OpenKey, Witness, delivered

AskEnds = Callable[[str], Ends]
"""How far Kafka goes with a topic, now."""


@dataclass(frozen=True, slots=True)
class Deliveries:
    """What every ingest observes (decision 0033); the slot only for tables that nobody observes."""

    lake: Lake
    database: Database
    ends: AskEnds

    def by_observation(
        self, keys: Iterable[OpenKey], table: Table, subject: Subject, *, mark: LogPosition
    ) -> tuple[OpenKey, ...]:
        """The same keys, with what was observed since. `mark` is that of the snapshot.

        What stands above it was observed of another log: of a source before it was restored, or before a
        standby took over.
        """
        epoch = subject.ledger.epoch
        found = [each for each in self._observed(table) if each.epoch == epoch and each.position <= mark]
        return delivered(keys, [Delivery(each.position, each.ends, Witness.CONNECT) for each in found])

    def by_slot(self, keys: Sequence[OpenKey], table: Table, subject: Subject) -> tuple[OpenKey, ...]:
        """The same keys, with what the slot says now where nothing is observed.

        Asked for in this order: first what the connector has delivered, then how far Kafka goes.
        """
        waiting = [key.since.mark for key in keys if key.since.ends is None]
        if not waiting or self._observed(table):
            return tuple(keys)
        confirmed = confirmed_by(self.database.slots())
        if confirmed is None or confirmed < min(waiting):
            return tuple(keys)
        return delivered(keys, [Delivery(confirmed, self.ends(subject.topic), Witness.SLOT)])

    def _observed(self, table: Table) -> list[Confirmation]:
        """Oldest first. Positions of another source say nothing, and nothing is observed any more without the
        topic of Connect's offsets."""
        settings = self.database.settings
        known = read_confirmations(self.lake.confirmations(table.group))
        if settings.offsets_topic is None or known.address != settings.address:
            return []
        return list(known.of(table.name))[::-1]

"""What a person decided about one table with the parameters of a run; nothing of it outlives the run."""

from __future__ import annotations

from dataclasses import dataclass

from cdc_lakehouse.contract import JobRequest
from cdc_lakehouse.errors import SourceEpochOldError
from cdc_lakehouse.lake.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Decided:
    accept_gap: bool = False
    """Go on behind records that Kafka no longer holds."""
    source_epoch: int | None = None
    """The source, or its topic, is another incarnation from here on."""
    acknowledge_foreign: bool = False
    """Commits that are not ours were meant; go on from what the table holds now."""
    fill_gaps: bool = False
    """Read what the table is known to miss, as far as Kafka still holds it."""

    @classmethod
    def about(cls, table: str, request: JobRequest) -> Decided:
        return cls(
            accept_gap=table in request.accept_gap,
            source_epoch=request.source_epoch.get(table),
            acknowledge_foreign=table in request.acknowledge_foreign,
            fill_gaps=table in request.fill_gaps,
        )

    def epoch_to_open(self, ledger: Ledger) -> int | None:
        """None where nobody asked, or where a try before this one opened it already."""
        asked = self.source_epoch
        if asked is None or asked in _opened(ledger):
            return None
        if asked <= ledger.epoch:
            raise SourceEpochOldError(table=ledger.table, asked=asked, known=ledger.epoch)
        return asked


NOTHING = Decided()


def _opened(ledger: Ledger) -> set[int]:
    """By a person. A number that records have opened is not the one that is asked for."""
    known = [progress for partitions in ledger.sources.values() for progress in partitions.values()]
    return {epoch for each in known for _, epoch in each.epochs} - {n for each in known for n in each.noticed}

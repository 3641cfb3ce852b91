"""Decisions of a person about one table, made with the parameters of a run; none of them outlives the run.

A decision that gives something up names its object, as the error sentence printed it: a run that is cleared
next week decides about what its person saw, never about what has happened since.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cdc_lakehouse.contract import MAX_SOURCE_EPOCH, JobRequest, table_named_by
from cdc_lakehouse.errors import (
    DecisionOutdatedError,
    SourceEpochOldError,
    SourceEpochSpentError,
    SourceEpochTooHighError,
)
from cdc_lakehouse.lake.ledger import Ledger

MOST_EPOCHS_AHEAD = 1_000_000_000
"""Dates may be numbers (20260731); a slip of the keyboard may not use up all numbers that there are."""

Named = frozenset[str]
"""Names behind `<table>=` in a decision; a decision without any is refused."""


@dataclass(frozen=True, slots=True)
class Decided:
    accept_gap: Named | None = None
    """Offsets that Kafka no longer has and that are given up, as `losses.names_of` writes them."""
    source_epoch: int | None = None
    """The source, or its topic, is another incarnation from here on."""
    acknowledge_foreign: Named | None = None
    """The foreign commit that was intended, as `lake.state.foreign_name` writes it."""
    stop_reading: Named | None = None
    """The step of a table that its source has dropped, as `lake.ledger.step_name` writes it."""
    fill_gaps: bool = False
    """Read what the table is known to miss, as far as Kafka still holds it."""

    @classmethod
    def about(cls, table: str, request: JobRequest) -> Decided:
        return cls(
            accept_gap=named_for(table, request.accept_gap),
            source_epoch=request.source_epoch.get(table),
            acknowledge_foreign=named_for(table, request.acknowledge_foreign),
            stop_reading=named_for(table, request.stop_reading),
            fill_gaps=table in request.fill_gaps or request.from_time is not None,
        )

    def epoch_to_open(self, ledger: Ledger) -> int | None:
        """None where nobody asked, or where a try before this one opened it already."""
        asked = self.source_epoch
        if asked is None or asked in _opened(ledger):
            return None
        if ledger.epoch >= MAX_SOURCE_EPOCH:
            raise SourceEpochSpentError(
                table=ledger.table, asked=asked, known=ledger.epoch, highest=MAX_SOURCE_EPOCH
            )
        if asked <= ledger.epoch:
            raise SourceEpochOldError(table=ledger.table, asked=asked, known=ledger.epoch)
        highest = min(ledger.epoch + MOST_EPOCHS_AHEAD, MAX_SOURCE_EPOCH)
        if asked > highest:
            raise SourceEpochTooHighError(
                table=ledger.table, asked=asked, known=ledger.epoch, highest=highest
            )
        return asked


NOTHING = Decided()


def require_what_stands(parameter: str, *, table: str, named: Named, standing: Named) -> None:
    """Raise `DecisionOutdatedError` unless the decision names exactly what is open.

    A decision without a name is refused also where nothing is open: next time something may be.
    """
    if not named or named != standing:
        raise DecisionOutdatedError(
            parameter=parameter,
            table=table,
            named=f"`{decision_text(table, named)}`" if named else "nothing",
            standing=f"`{decision_text(table, standing)}`" if standing else "nothing",
        )


def decision_text(table: str, named: Iterable[str]) -> str:
    """Return `<table>=<name>,<name>`, ready to be pasted into the form."""
    return f"{table}={','.join(sorted(named))}"


def named_for(table: str, values: Iterable[str]) -> Named | None:
    """Return the names in the values `<table>=<a>,<b>` about this table; None where no value is about it."""
    texts = [value.partition("=")[2] for value in values if table_named_by(value) == table]
    names = (name.strip() for text in texts for name in text.split(","))
    return frozenset(filter(None, names)) if texts else None


def _opened(ledger: Ledger) -> set[int]:
    """By a person. A number that records have opened is not the one that is asked for."""
    known = [progress for partitions in ledger.sources.values() for progress in partitions.values()]
    return {epoch for each in known for _, epoch in each.epochs} - {n for each in known for n in each.noticed}

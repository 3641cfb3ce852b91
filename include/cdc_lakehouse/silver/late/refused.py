"""Events that silver would refuse for ever because it has newer ones: each is explained (rule 2.7).

Nothing is read for it unless an event of the work is below what silver has applied, or bronze saw a partition
turn back within the work.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from cdc_lakehouse.errors import SourceWentBackError
from cdc_lakehouse.lake.applied import Applied
from cdc_lakehouse.lake.ledger import Ledger, Ranges
from cdc_lakehouse.lake.turned_back import turns, unknown_below
from cdc_lakehouse.silver.examine import WorkFacts


def may_have_gone_back(facts: WorkFacts, *, before: Applied, held: Ledger, work: Ranges) -> bool:
    """Also where bronze saw a partition turn back within `work` and go on until it was above again.

    An event that names the very commit that silver has reached is usually of a transaction that was cut.
    """
    turned = any(
        (at := held.sources[source][partition].turned) is not None and start <= at < end
        for source, partitions in work.items()
        for partition, (start, end) in partitions.items()
    )
    lowest, reached = facts.lowest, before.reached
    is_below = lowest is not None and reached is not None and lowest < reached
    return turned or facts.turned_back or is_below


def refuse_what_went_back(history: DataFrame, *, held: Ledger, work: Ranges) -> None:
    """Raise where new events stand below older ones: silver would refuse them for ever, under a green run.

    What came late, or was decoded again, is not in `work`, and may be as old as it likes.
    """
    found = turns(history, held=held, work=work)
    if not found:
        return
    first = min(found, key=lambda turn: turn.since or 0)
    raise SourceWentBackError(
        table=held.table,
        count=sum(turn.events for turn in found),
        coordinate=first.coordinate,
        position=_words(first.position),
        highest=_words(first.highest),
        epoch=held.epoch,
        doubt=_doubt(unknown_below(history, found, held=held)),
    )


def _doubt(unknown: int) -> str:
    if not unknown:
        return ""
    return (
        f"; {unknown} record(s) before them are missing or could not be decoded, and may have been the same"
    )


def _words(place: tuple[int, int]) -> str:
    commit, row = place
    return f"row {row} behind commit {commit}"

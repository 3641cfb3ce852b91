"""From which place on a table's rows count: a truncate, and a repeated snapshot, take away what stood before.

Truncates are applied by position, so it does not matter in which partition one arrives. A repeated snapshot
opens a source epoch (`cdc-semantics` rule 2.5), and rows that are still of an older one when it is complete
were deleted while nobody watched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cdc_lakehouse.lake.applied import Applied
from cdc_lakehouse.lake.ledger import Ledger, topics_of
from cdc_lakehouse.lake.place import Place, newest
from cdc_lakehouse.lake.progress import Beginning, Progress


def cleared_by(before: Applied, *, truncated: Place | None, ended: int | None, held: Ledger) -> Applied:
    """`truncated` is the newest truncate of the work, `ended` the transaction of a snapshot that ended in it.

    The last row of a snapshot may be read before others that stand in other partitions. So nothing is
    removed before bronze has read all that Kafka was seen to hold.
    """
    begun = None if ended is None else _first_epoch(held, ended)
    complete = max((epoch for epoch in (before.complete, begun) if epoch), default=None)
    cleared = newest(before.cleared, truncated)
    if complete is None or _has_more_to_read(held):
        return replace(before, cleared=cleared, complete=complete)
    return replace(before, cleared=newest(cleared, Place.beginning_of(complete)), complete=None)


def waits_for_the_rest(silver: Applied, held: Ledger) -> bool:
    """Whether rows that a snapshot lacks are still there, though bronze has read all by now."""
    return silver.complete is not None and not _has_more_to_read(held)


def _first_epoch(held: Ledger, transaction: int) -> int | None:
    """A partition that comes late may hold rows of a snapshot in a later epoch than the others.

    None for a table of several topics: they end their snapshots one by one, and perhaps in databases of
    their own, so nothing says which of its rows such an end is about. None also for an overtaken snapshot.
    """
    if len(topics_of(held)) > 1 or is_overtaken(held, transaction):
        return None
    epochs = (progress.epoch_at(begun.offset) for progress, begun in _beginnings(held, transaction))
    return min(epochs, default=None)


def is_overtaken(held: Ledger, transaction: int) -> bool:
    """Return whether events that were sent after this snapshot have an older epoch than its rows.

    Such events look like rows that the snapshot lacks, so it must remove nothing (decision 0038).
    """
    since = (begun.since for _, begun in _beginnings(held, transaction))
    return any(boundary is not None and boundary.overtaken for boundary in since)


def _beginnings(held: Ledger, transaction: int) -> Iterator[tuple[Progress, Beginning]]:
    for partitions in held.sources.values():
        for progress in partitions.values():
            yield from ((progress, begun) for begun in progress.beginnings if begun.tx_id == transaction)


def _has_more_to_read(held: Ledger) -> bool:
    return any(p.unread is not None for partitions in held.sources.values() for p in partitions.values())

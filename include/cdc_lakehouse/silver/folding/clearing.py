"""From which place on a table's rows count: a truncate, and a repeated snapshot, take away what stood before.

Truncates are applied by position, so it does not matter in which partition one arrives. A repeated snapshot
opens a source epoch (`cdc-semantics` rule 2.5), and rows that are still of an older one when it is complete
were deleted while nobody watched.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from cdc_lakehouse.lake.applied import Applied
from cdc_lakehouse.lake.ledger import Ledger, topics_of
from cdc_lakehouse.lake.place import Place, newest

logger = logging.getLogger(__name__)


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
    their own, so nothing says which of its rows such an end is about. None, too, where events from behind the
    snapshot have an older epoch than its rows: they would be taken for rows that it lacks.
    """
    if len(topics_of(held)) > 1:
        return None
    found = [
        (progress.epoch_at(each.offset), each)
        for partitions in held.sources.values()
        for progress in partitions.values()
        for each in progress.beginnings
        if each.tx_id == transaction
    ]
    if any(each.since is not None and each.since.overtaken for _, each in found):
        logger.warning("rows that a snapshot lacks stay", extra={"tx_id": transaction})
        return None
    return min((epoch for epoch, _ in found), default=None)


def _has_more_to_read(held: Ledger) -> bool:
    return any(p.unread is not None for partitions in held.sources.values() for p in partitions.values())

"""State the ledger of a quiet table again, before the commit that has it expires with the Delta log."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime, timedelta

from pyspark.sql import SparkSession

from cdc_lakehouse.application.failures import is_conflict
from cdc_lakehouse.lake.delta_transaction import DeltaTransaction
from cdc_lakehouse.lake.ledger import APPLICATION_ID, Kind
from cdc_lakehouse.lake.state import TableState

logger = logging.getLogger(__name__)

OLD = timedelta(days=7)
"""A quarter of the time for which the log is kept: maintenance may be red for three weeks."""
DEEP = 6
"""Commits of maintenance on top of the ledger, two or three each night; an idle look reads eight at most."""


def is_due(state: TableState, *, now: datetime) -> bool:
    """Return whether the newest ledger is old, or deep below other commits."""
    if state.ledger is None or state.stated is None or state.stated_at is None:
        return False
    return now - state.stated_at >= OLD or state.version - state.stated >= DEEP


def restate(session: SparkSession, uri: str, state: TableState) -> bool:
    """Commit the newest ledger once more, as the same step. False when a concurrent commit was faster.

    `state` has passed `read_state`, so nothing foreign is behind the ledger; the commit is conditional on
    that version, so nothing gets between. A second call changes nothing that anybody reads.
    """
    if state.ledger is None:
        return False
    ledger = state.ledger
    if ledger.kind is Kind.SILVER:
        ledger = replace(ledger, applied=replace(ledger.applied, follows=state.version))
    try:
        transaction = DeltaTransaction.start(session, uri)
        if transaction.read_version != state.version:
            return False
        transaction.versions_of([APPLICATION_ID])
        transaction.commit([], {APPLICATION_ID: ledger.seq}, metadata=ledger.to_json(), step=ledger.seq)
    except Exception as exc:
        if not is_conflict(exc):
            raise
        logger.warning("the ledger was not stated again: a writer was faster", extra={"uri": uri})
        return False
    logger.info("the ledger was stated again", extra={"uri": uri, "seq": ledger.seq})
    return True

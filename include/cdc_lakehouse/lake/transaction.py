"""The fence around a commit: data and ledger in one Delta commit, one winner per step.

Delta gives up silently when a transaction id was used before, so the proof that a statement
committed is the ledger it left, read back after it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from pyspark.sql import SparkSession

from cdc_lakehouse.errors import SupersededError
from cdc_lakehouse.lake.ledger import APPLICATION_ID, Ledger
from cdc_lakehouse.lake.state import TableState, read_state

logger = logging.getLogger(__name__)

Seen = TypeVar("Seen")

_SESSION_APP = "spark.databricks.delta.write.txnAppId"
_SESSION_VERSION = "spark.databricks.delta.write.txnVersion"
_SESSION_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


@contextmanager
def fenced_statement(session: SparkSession, ledger: Ledger) -> Iterator[None]:
    """The one statement inside states `ledger`. `session` must not run anything else meanwhile."""
    with numbered_statement(session, APPLICATION_ID, number=ledger.seq, metadata=ledger.to_json()):
        yield


@contextmanager
def numbered_statement(
    session: SparkSession, application_id: str, *, number: int, metadata: str
) -> Iterator[None]:
    """The one statement inside does nothing where `number` was used; `metadata` tells whether it did."""
    settings = {_SESSION_APP: application_id, _SESSION_VERSION: str(number), _SESSION_METADATA: metadata}
    for key, value in settings.items():
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            session.conf.unset(key)


def commit(statement: Callable[[], None], *, uri: str, ledger: Ledger) -> TableState:
    """Run a fenced statement and prove that it committed `ledger`.

    A second call with the same ledger changes nothing and raises `SupersededError`, unless its
    first call was this attempt's own and did commit.
    """

    def ours(state: TableState) -> bool:
        found = state.ledger
        return found is not None and (found.seq, found.attempt) == (ledger.seq, ledger.attempt)

    return proven(
        statement,
        look=lambda: read_state(uri, table=ledger.table),
        ours=ours,
        taken=lambda state: state.seq >= ledger.seq,
        superseded=SupersededError(table=ledger.table, seq=ledger.seq - 1, attempt=ledger.attempt),
    )


def proven(
    statement: Callable[[], None],
    *,
    look: Callable[[], Seen | None],
    ours: Callable[[Seen], bool],
    taken: Callable[[Seen], bool],
    superseded: SupersededError,
) -> Seen:
    """What the table shows once the statement has run, if its commit is `ours`; `superseded` if another's is.

    An answer may be lost, so a statement that threw may have committed.
    """
    try:
        statement()
    except Exception:
        seen = look()
        if seen is not None and ours(seen):
            logger.warning("commit threw but had happened", extra={"attempt": superseded.attempt})
            return seen
        if seen is not None and taken(seen):
            raise superseded from None
        raise
    seen = look()
    if seen is None or not ours(seen):
        raise superseded
    return seen

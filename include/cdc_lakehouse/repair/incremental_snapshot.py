"""Wait until a connector has ended the incremental snapshot that a signal asked for, and read what it sent.

The offset that a connector commits to Kafka Connect names the signals whose snapshots are under way. Rows of
the table of signals, and the records themselves, do not show the end (decision 0060).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.committed_offsets import committed_offsets
from cdc_lakehouse.bronze.job import ingest
from cdc_lakehouse.bronze.look import connect
from cdc_lakehouse.config.kafka_settings import librdkafka_settings
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.config.settings import Role
from cdc_lakehouse.database.access import Database
from cdc_lakehouse.database.positions import LogPosition
from cdc_lakehouse.debezium.connector_offset import complete_up_to, server_of, snapshots_under_way
from cdc_lakehouse.debezium.topic_names import prefix_and_relation
from cdc_lakehouse.errors import ResyncNotEndedError
from cdc_lakehouse.kafka.offsets_topic import Committed
from cdc_lakehouse.lake.ends import has_read
from cdc_lakehouse.lake.state import read_state

logger = logging.getLogger(__name__)

_SECONDS_BETWEEN_LOOKS = 5.0


class SnapshotState(StrEnum):
    UNKNOWN = "its connector has committed no offset to Kafka Connect"
    NOT_READ = "its connector has not come to the signal"
    RUNNING = "its connector still sends rows"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class SentSignal:
    """A signal that the source has committed."""

    signal_id: str
    topic: str
    """Where its rows come."""
    behind: LogPosition
    """A place in the source's log behind the signal."""


def state_of_snapshot(committed: Iterable[Committed], signal: SentSignal) -> SnapshotState:
    """Return how far the connector is by its newest offset."""
    prefix, _ = prefix_and_relation(signal.topic)
    offsets = [each.offset for each in committed if server_of(each.key) == prefix]
    if not offsets:
        return SnapshotState.UNKNOWN
    position = complete_up_to(offsets[-1])
    if position is None or LogPosition(position) < signal.behind:
        return SnapshotState.NOT_READ
    is_running = signal.signal_id in snapshots_under_way(offsets[-1])
    return SnapshotState.RUNNING if is_running else SnapshotState.ENDED


def wait_for_end(
    application: Application, table: Table, database: Database, signal: SentSignal, *, patience: timedelta
) -> None:
    """Return once the snapshot has ended. Raise `ResyncNotEndedError` after `patience`."""
    settings = librdkafka_settings(application.connection(Role.KAFKA))

    def look() -> SnapshotState:
        state = state_of_snapshot(committed_offsets(database, settings), signal)
        logger.info("snapshot", extra={"signal": signal.signal_id, "state": state})
        return state

    waiting = Retrying(
        retry=retry_if_result(lambda state: state is not SnapshotState.ENDED),
        stop=stop_after_delay(patience),
        wait=wait_fixed(_SECONDS_BETWEEN_LOOKS),
    )
    try:
        waiting(look)
    except RetryError as exc:
        state: SnapshotState = exc.last_attempt.result()
        problem = f"{state}; waited {patience}"
        raise ResyncNotEndedError(table=table.name, digest=_digest(signal), problem=problem) from exc


def read_to_end(application: Application, table: Table, signal: SentSignal) -> None:
    """Drain the table into bronze, as far as Kafka goes now. A second call reads what came since.

    Everything that the snapshot sent was acknowledged before its end was committed.
    """
    with closing(connect(application)) as cluster:
        ends = cluster.written([signal.topic])
    request = replace(application.request, tables=(table.name,))
    (result,) = ingest(replace(application, request=request, tables=(table,)))
    if result.error is not None:
        problem = f"bronze could not read it: {result.error.code}: {result.error.sentence}"
        raise ResyncNotEndedError(table=table.name, digest=_digest(signal), problem=problem)
    bronze = read_state(application.lake.bronze(table.name), table=table.name)
    if bronze is None or bronze.ledger is None or not has_read(bronze.ledger, ends):
        problem = "bronze has not read all of it, another run may be reading"
        raise ResyncNotEndedError(table=table.name, digest=_digest(signal), problem=problem)


def _digest(signal: SentSignal) -> str:
    return signal.signal_id.rpartition("-")[2]

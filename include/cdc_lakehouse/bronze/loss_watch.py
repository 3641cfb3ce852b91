"""Tell each table of a group how long until retention overtakes it: one round to Kafka for all."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from confluent_kafka import KafkaException

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.bronze.incarnations import current_source
from cdc_lakehouse.bronze.time_to_loss import Ends, TimeToLoss, offsets_to_date, time_to_loss
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.errors import LakehouseError
from cdc_lakehouse.kafka.facts import ClusterFacts
from cdc_lakehouse.kafka.record_times import record_times
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.state import look_into

logger = logging.getLogger(__name__)


def times_to_loss(
    settings: Mapping[str, str], facts: ClusterFacts, ends: Mapping[str, Ends]
) -> dict[str, TimeToLoss]:
    """By table, for those of which something can be told; warns of the ones that have little left.

    `ends` is where each table stands before this run reads anything. Never raises for Kafka: a report must
    not fail a run.
    """
    asked = {table: offsets_to_date(facts.topics, own) for table, own in ends.items()}
    try:
        unread = record_times(settings, {p: o for first, _ in asked.values() for p, o in first.items()})
        oldest = record_times(settings, {p: o for _, last in asked.values() for p, o in last.items()})
    except KafkaException as exc:
        logger.warning("time to loss is not told", extra={"reason": str(exc)})
        return {}
    found, now = {}, int(time.time() * 1000)
    for table, own in ends.items():
        limit = time_to_loss(facts.topics, own, unread=unread, oldest=oldest, now=now)
        if limit is not None:
            found[table] = limit
            if limit.is_short:
                logger.warning("retention is about to overtake", extra={"table": table, **limit.told()})
    return found


def ledger_in_the_log(application: Application, table: Table) -> Ledger | None:
    """Return the ledger of a table that cannot be planned: a table that is not read is the one at risk."""
    try:
        state = look_into(application.lake.bronze(table.name), table=table.name)
    except LakehouseError:
        return None
    return None if state is None else state.ledger


def ends_of(ledger: Ledger | None, table: Table) -> Ends:
    """Return the end of the table in the newest incarnation of each topic."""
    if ledger is None:
        return {}
    current = {topic: current_source(ledger, topic) for topic in table.topics}
    return {
        topic: {partition: progress.end for partition, progress in ledger.sources[source].items()}
        for topic, source in current.items()
        if source is not None
    }

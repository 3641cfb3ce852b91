"""Can the source be compared with silver, and who tells how far its connector is?"""

from __future__ import annotations

from collections.abc import Mapping

from cdc_lakehouse.config.settings import Connection
from cdc_lakehouse.database.access import Database, confirmed_by
from cdc_lakehouse.debezium.connector_offset import server_of
from cdc_lakehouse.kafka.offsets_topic import newest_committed
from cdc_lakehouse.preflight.findings import Finding

_NAME_IT = (
    "No table says up to when it is complete, and a row that is only late may be called wrong: name the "
    "topic of Connect's offsets (its `offset.storage.topic`) as `offsets_topic` in the connection's extra."
)


def source_finding(connection: Connection, kafka: Mapping[str, str]) -> Finding:
    """`kafka` are the settings of its client. The slots are read in any case: so the login is tried."""
    database = Database.of(connection)
    slots, topic = database.slots(), database.settings.offsets_topic
    if topic is not None:
        return offsets_finding(database, kafka, topic)
    told = ", ".join(f"{slot.name}{'' if slot.active else ' (nobody reads it)'}" for slot in slots)
    sentence = f"{database.settings.address}, slots {told or 'none'}"
    if confirmed_by(slots) is None:
        unread = "Until each of these slots is read, rows that differ stay open: start the connector."
        return Finding.warning("source", sentence, f"{unread} {_NAME_IT}")
    return Finding.warning("source", sentence, _NAME_IT)


def offsets_finding(database: Database, kafka: Mapping[str, str], topic: str) -> Finding:
    """Has a connector of Debezium committed there?"""
    address = database.settings.address
    try:
        found = [server_of(each.key) for each in newest_committed(kafka, topic)]
    except ValueError as exc:
        raise database.named.problem(f"its `offsets_topic` {topic} holds something else") from exc
    servers = sorted({server for server in found if server is not None})
    if servers:
        return Finding.fine("source", f"{address}, offsets of {', '.join(servers)} in {topic}")
    advice = "Start the connector, or name Connect's `offset.storage.topic` as `offsets_topic`."
    return Finding.warning("source", f"{address}, no connector has committed in {topic}", advice)

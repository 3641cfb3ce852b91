"""Can the source be compared with silver, and who tells how far its connector is?"""

from __future__ import annotations

from collections.abc import Mapping

from cdc_lakehouse.application.committed_offsets import committed_offsets
from cdc_lakehouse.config.settings import Connection
from cdc_lakehouse.database.access import Database, confirmed_by
from cdc_lakehouse.debezium.connector_offset import server_of
from cdc_lakehouse.preflight.findings import Finding

_NAME_IT = (
    "No table says up to when it is complete, and a row that is only late may be called wrong: name the "
    "topic of Connect's offsets (its `offset.storage.topic`) as `offsets_topic` in the connection's extra."
)


def source_finding(connection: Connection, kafka: Mapping[str, str]) -> Finding:
    """`kafka` are the settings of its client. The slots are read in any case: so the login is tried."""
    database = Database.of(connection)
    slots = database.slots()
    if database.settings.offsets_topic is not None:
        return offsets_finding(database, kafka)
    told = ", ".join(f"{slot.name}{'' if slot.active else ' (nobody reads it)'}" for slot in slots)
    sentence = f"{database.settings.address}, slots {told or 'none'}"
    if confirmed_by(slots) is None:
        unread = "Until each of these slots is read, rows that differ stay open: start the connector."
        return Finding.warning("source", sentence, f"{unread} {_NAME_IT}")
    return Finding.warning("source", sentence, _NAME_IT)


def offsets_finding(database: Database, kafka: Mapping[str, str]) -> Finding:
    """Has a connector of Debezium committed there?"""
    address, topic = database.settings.address, database.settings.offsets_topic
    found = {server_of(each.key) for each in committed_offsets(database, kafka)}
    servers = sorted(server for server in found if server is not None)
    if servers:
        return Finding.fine("source", f"{address}, offsets of {', '.join(servers)} in {topic}")
    advice = "Start the connector, or name Connect's `offset.storage.topic` as `offsets_topic`."
    return Finding.warning("source", f"{address}, no connector has committed in {topic}", advice)

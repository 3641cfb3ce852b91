"""Can the source be compared with silver, and will it be told how far the connector is?"""

from __future__ import annotations

from cdc_lakehouse.config.settings import Connection
from cdc_lakehouse.database.access import Database, confirmed_by
from cdc_lakehouse.preflight.findings import Finding


def source_finding(connection: Connection) -> Finding:
    database = Database.of(connection)
    slots = database.slots()
    told = ", ".join(f"{slot.name}{'' if slot.active else ' (nobody reads it)'}" for slot in slots)
    sentence = f"{database.settings.address}, slots {told or 'none'}"
    if confirmed_by(slots) is None:
        advice = (
            "Until each of these slots is read, rows that differ stay open: start the connector, or name its "
            "slot in the connection's extra."
        )
        return Finding.warning("source", sentence, advice)
    return Finding.fine("source", sentence)

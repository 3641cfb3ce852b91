"""What a PostgreSQL connector has committed to Kafka Connect: the place in the log up to which all is sent.

Connect commits the offset of a record once Kafka has acknowledged it and every record before it, over all
partitions (KAFKA-12226). What the connector tells its slot is less than that: the offset of whatever record
was acknowledged last, while older ones of other partitions may still wait.
"""

from __future__ import annotations

from typing import Any


def server_of(key: Any) -> str | None:
    """The `topic.prefix` of `["<connector>", {"server": "<prefix>"}]`; None for other connectors' keys."""
    match key:
        case [str(), {"server": str(server)}]:
            return server
    return None


def complete_up_to(offset: Any) -> int | None:
    """Every transaction that was committed up to there came before the record with this offset.

    None while a snapshot is on its way: its rows come before the log, and no offset says that all are there.
    """
    match offset:
        case {"lsn_commit": int(position), **others} if not others.get("snapshot"):
            return position
    return None

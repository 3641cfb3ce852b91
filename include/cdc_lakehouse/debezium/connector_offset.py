"""What a PostgreSQL connector has committed to Kafka Connect: the place in the log up to which all is sent.

Connect commits the offset of a record once Kafka has acknowledged it and every record before it, over all
partitions (KAFKA-12226). What the connector tells its slot is less than that: the offset of whatever record
was acknowledged last, while older ones of other partitions may still wait.
"""

from __future__ import annotations

import json
from typing import Any

_SIGNAL = "incremental_snapshot_collections_correlation_id"


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


def snapshots_under_way(offset: Any) -> frozenset[str]:
    """Return the ids of the signals whose incremental snapshots had not ended at a record with this offset.

    A connector that does not name a signal for each table names one for all.
    """
    match offset:
        case {"incremental_snapshot_collections": str(text), **others}:
            signal = others.get("incremental_snapshot_correlation_id")
            return frozenset(str(each.get(_SIGNAL, signal)) for each in json.loads(text))
    return frozenset()

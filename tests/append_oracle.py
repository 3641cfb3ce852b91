"""The specification of silver with a row per event: every event once (`cdc-semantics` rule 2.3, §5).

One function of the rows, like that of silver with a row per key: whatever batches they came in.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oracle import IGNORED_OPS, Event, Row, decodable, event_of  # type: ignore[import-not-found]

Identity = tuple[Any, ...]
READ, CREATE, DELETE, TRUNCATE = "r", "c", "d", "t"


def appended_of(rows: Iterable[Row]) -> list[Row]:
    """Raises `Refused` for what cannot be applied. Of an event that was sent again, the first has its row."""
    found: dict[Identity, Row] = {}
    for row in decodable(list(rows)):
        if row["op"] not in IGNORED_OPS:
            event = event_of(row)
            found.setdefault(identity(event), appended_row(event))
    return list(found.values())


def identity(event: Event) -> Identity:
    """The commit before a transaction may change when it is sent again (rule 2.2)."""
    epoch, phase, commit, *behind = event.place
    commit = commit if event.tx is None else 0
    return (epoch, phase, commit, *behind, event.tx, event.op, event.key, coordinate(event))


def coordinate(event: Event) -> str | None:
    """Without a key, rows of a snapshot and rows of a COPY whose events nobody counts share their place."""
    order_in_tx = event.place[5]
    shares = event.op == READ or (event.op == CREATE and order_in_tx == 0)
    return event.row["at"] if event.key is None and shares else None


def appended_row(event: Event) -> Row:
    return {
        **told(event),
        "_cdc_op": event.op,
        "_cdc_position": list(event.place),
        "_cdc_tx_id": event.tx,
        "_cdc_unavailable": list(event.unavailable) or None,
        "_cdc_coordinate": coordinate(event),
    }


def told(event: Event) -> Row:
    """Of the row. `before` with nothing beside the key tells the key only."""
    row, key = event.row, event.row["key"] or {}
    if event.op == TRUNCATE:
        return {}
    if event.op == DELETE:
        before = row["before"] or {}
        is_whole = event.key is None or any(before[name] is not None for name in before.keys() - key.keys())
        return {**before, **key} if is_whole else dict(key)
    return {**row["after"], **key}

"""The specification of `key` of a table (decision 0034): rows are told apart by columns of theirs.

What bronze holds is rewritten as if Kafka's message key had been made of these columns; from there on
`oracle` says what becomes of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any

from oracle import (  # type: ignore[import-not-found]
    IGNORED_OPS,
    ROW_OPS,
    Event,
    Place,
    Refused,
    Row,
    clearings,
    decodable,
    event_of,
    with_one_commit_per_transaction,
)

IMAGES = ("c", "r", "u")


def rekeyed(rows: Iterable[Row], key: Sequence[str]) -> list[Row]:
    """Raises `Refused` where an event does not tell the key, or two rows have the same one at one time.

    What stands before the last clearing of the table is gone, whatever its key was.
    """
    found = list(rows)
    if all(row["key"] is None or set(row["key"]) == set(key) for row in found) and has_key(found):
        return found
    since = last_clearing(found)
    kept = [
        half
        for row in found
        for half in halves(row, key)
        if half["key"] is not None or half["op"] not in ROW_OPS or half["error"] is not None
    ]
    if any(is_behind(row, since) and not tells(row, key) for row in found):
        raise Refused("KEY_NOT_TOLD")
    refuse_doubles(kept, since)
    return kept


def told_apart_by_topic(rows: Iterable[Row], column: str) -> list[Row]:
    """The specification of `topic_column`: as if every message key ended with the topic."""
    return [
        {**row, "key": None if row["key"] is None else {**row["key"], column: row["topic"]}} for row in rows
    ]


def refuse_shared_keys(rows: Iterable[Row]) -> None:
    """Raises `Refused` where two topics tell rows of one key."""
    topics: dict[Any, str] = {}
    for row in rows:
        if row["error"] is None and row["op"] in ROW_OPS and row["key"] is not None:
            key = tuple(row["key"].values())
            if topics.setdefault(key, row["topic"]) != row["topic"]:
                raise Refused("KEY_IN_TWO_TOPICS")


def halves(row: Row, key: Sequence[str]) -> Iterator[Row]:
    """An update that changes the key is a delete and a create of one place, as of a changed message key."""
    before, after = key_in(row, "before", key), key_in(row, "after", key)
    if row["op"] == "u" and None not in (before, after) and before != after:
        *place, _ = row["position"]
        yield {**row, "op": "d", "key": before, "position": [*place, 0], "after": None, "unavailable": None}
        yield {**row, "op": "c", "key": after, "before": None}
    else:
        yield {**row, "key": before if row["op"] == "d" else after}


def key_in(row: Row, side: str, key: Sequence[str]) -> Row | None:
    """Columns of the message key are told by every event."""
    message_key = row["key"] or {}
    values = message_key if set(key) <= set(message_key) else row[side]
    untold = (row["unavailable"] or ()) if side == "after" else ()
    if row["error"] is not None or values is None or any(name in untold for name in key):
        return None
    own = {name: values[name] for name in key}
    return None if None in own.values() else own


def has_key(rows: list[Row]) -> bool:
    return any(row["key"] is not None for row in rows)


def tells(row: Row, key: Sequence[str]) -> bool:
    sides = {"c": ("after",), "r": ("after",), "u": ("before", "after"), "d": ("before",)}
    return row["error"] is not None or all(key_in(row, side, key) for side in sides.get(row["op"], ()))


def is_behind(row: Row, since: Place) -> bool:
    return row["position"] is not None and (row.get("epoch", 0), *row["position"]) > since


def last_clearing(rows: list[Row]) -> Place:
    return max((event.place for event in clearings(events_of(rows))), default=())


def events_of(rows: list[Row]) -> list[Event]:
    events = [event_of(row) for row in decodable(rows) if row["op"] not in IGNORED_OPS]
    return list(with_one_commit_per_transaction(events))


def refuse_doubles(rows: list[Row], since: Place) -> None:
    by_key: dict[Any, list[Event]] = {}
    for event in events_of(rows):
        if event.key is not None and event.place > since:
            by_key.setdefault(event.key, []).append(event)
    for events in by_key.values():
        for one, other in pairwise(sorted(events, key=attrgetter("place"))):
            if are_two_rows(one, other):
                raise Refused("KEY_NOT_UNIQUE")


def are_two_rows(one: Event, other: Event) -> bool:
    """Neighbours of one key: whether the second tells a row while that of the first is alive."""
    same_epoch = one.place[0] == other.place[0]
    if not same_epoch or one.op not in IMAGES:
        return False
    if one.place == other.place:
        # What was sent again is the same, and a snapshot reads a row once.
        at_once = one.op == other.op == "c" or (one.op == other.op == "r" and one.place[1] == 0)
        return bool(at_once and one.row["after"] != other.row["after"])
    return bool(other.op == "c" and (one.op != "r" or other.tx > one.tx > 0))

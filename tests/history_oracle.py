"""The specification of a history: the versions that rows had, from where to where (`cdc-semantics` §9).

One function of the rows, like that of `oracle`, whose walk through a key's events it shares.

A version stands from its own place to that of what ends it. Its times say the same of a clock that does not
run backwards: commit times do, between transactions, and rows that a snapshot read have the connector's. So
no time of a key is before the one that came before it in the order of the source, and as of any moment there
is one version of a row, or none: before it was there and when it is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from oracle import (  # type: ignore[import-not-found]
    IGNORED_OPS,
    Event,
    History,
    Image,
    Key,
    Row,
    decodable,
    event_of,
    with_one_commit_per_transaction,
)

NO_TIME = -(2**63)


@dataclass(frozen=True)
class Version:
    begun_by: Event
    image: Image
    ended_by: Event | None = None


def history_of(rows: Iterable[Row], *, tracked: Sequence[str] | None = None) -> list[Row]:
    """A new version where one of the `tracked` columns changes; where none are named, with every event, but
    for a row that a snapshot reads as it was."""
    decoded = decodable(list(rows))
    events = with_one_commit_per_transaction(
        [event_of(row) for row in decoded if row["op"] not in IGNORED_OPS]
    )
    history = History(events)
    return [row for key in history.keys for row in in_time(versions(history, key, tracked))]


def versions(history: History, key: Key, tracked: Sequence[str] | None) -> Iterator[Version]:
    is_open: Version | None = None
    steps = once_each(list(history.steps(key)))
    for number, (event, image) in enumerate(steps):
        behind = [later for later, _ in steps[number + 1 :] if later.op != "t"]
        if event.op == "t" and behind and repeats(event, behind[0]):
            continue
        if is_open is not None and goes_on(is_open, event, image, tracked):
            is_open = replace(is_open, image=image)
            continue
        if is_open is not None:
            yield replace(is_open, ended_by=event)
        is_open = None if image is None or image.deleted else Version(event, image)
    if is_open is not None:
        yield is_open


def once_each(steps: list[tuple[Event, Image | None]]) -> list[tuple[Event, Image | None]]:
    """What was sent again stands at the same place."""
    return list({event.place: (event, image) for event, image in steps}.values())


def repeats(clearing: Event, read: Event) -> bool:
    """Whether the row that a repeated snapshot would take away is one that it has."""
    return bool(clearing.place[1] == read.place[1] == 0 and clearing.tx == read.tx)


def goes_on(version: Version, event: Event, image: Image | None, tracked: Sequence[str] | None) -> bool:
    if image is None or image.deleted:
        return False
    if tracked is None:
        is_known = not version.image.unknown and not image.unknown
        return event.op == "r" and is_known and image.values == version.image.values
    return all(image.values.get(name) == version.image.values.get(name) for name in tracked)


def in_time(versions: Iterable[Version]) -> Iterator[Row]:
    """Versions of one key in their order."""
    latest = NO_TIME
    for version in versions:
        begun = latest = max(latest, version.begun_by.row.get("ts", 0))
        ended = None
        if version.ended_by is not None:
            ended = latest = max(latest, version.ended_by.row.get("ts", 0))
        yield {**history_row(version), "_cdc_from_ts": begun, "_cdc_to_ts": ended}


def history_row(version: Version) -> Row:
    begun, ended = version.begun_by, version.ended_by
    return {
        **version.image.values,
        "_cdc_op": begun.op,
        "_cdc_from": list(begun.place),
        "_cdc_to": None if ended is None else list(ended.place),
        "_cdc_tx_id": begun.tx,
        "_cdc_to_tx_id": None if ended is None else ended.tx,
        "_cdc_incomplete": list(version.image.unknown) or None,
    }

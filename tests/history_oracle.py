"""The specification of a history: the versions that rows had, from where to where (`cdc-semantics` §9).

One function of the rows, like that of `oracle`, whose walk through a key's events it shares.
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


@dataclass(frozen=True)
class Version:
    begun_by: Event
    image: Image
    ended_by: Event | None = None


def history_of(rows: Iterable[Row], *, tracked: Sequence[str] | None = None) -> list[Row]:
    """A new version where one of the `tracked` columns changes; where none are named, with every event."""
    decoded = decodable(list(rows))
    events = with_one_commit_per_transaction(
        [event_of(row) for row in decoded if row["op"] not in IGNORED_OPS]
    )
    history = History(events)
    return [history_row(version) for key in history.keys for version in versions(history, key, tracked)]


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
    if tracked is None or image is None or image.deleted:
        return False
    return all(image.values.get(name) == version.image.values.get(name) for name in tracked)


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

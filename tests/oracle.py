"""The specification of silver: what is left of all that bronze holds of a table (`cdc-semantics` §1-§4, §9).

One function of the rows, whatever batches they came in and in whatever order. Plain Python over plain
values; Spark says the same in its own words, batch by batch, and `tests/cases` hold both to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

Row = dict[str, Any]
Key = tuple[Any, ...]
Place = tuple[int, ...]
"""Rule 2.1, compared from left to right; the Kafka offset is not part of it."""
Silver = dict[Key, Row]
FIRST_EPOCH = 0
OLD_KEY = "__debezium.oldkey"


class Refused(Exception):  # noqa: N818 - an outcome, named as the cases name it
    """Silver stays as it was."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


ROW_OPS = ("c", "r", "u", "d")
IGNORED_OPS = (None, "m")  # a tombstone follows its delete, a logical message is no row
SNAPSHOT_ENDS = ("last", "last_in_data_collection")


@dataclass(frozen=True)
class Event:
    op: str
    key: Key | None
    place: Place
    tx: int | None
    row: Row
    unavailable: tuple[str, ...]
    snapshot: str
    unsent: tuple[str, ...] = ()
    """Columns of the row that the source had dropped by then: they stay as they were."""


@dataclass(frozen=True)
class Image:
    """A row of the source as its events tell it."""

    values: Row
    by: Event
    """The event that it stands as."""
    unknown: tuple[str, ...] = ()
    deleted: bool = False


def silver_of(
    rows: Iterable[Row], *, deletes: str = "hard", inside: Callable[[Row], bool] = lambda _: True
) -> Silver:
    """Raises `Refused` for what cannot be applied. Rows that are not `inside` are none of silver's."""
    decoded = decodable(list(rows))
    events = with_one_commit_per_transaction(
        [event_of(row) for row in decoded if row["op"] not in IGNORED_OPS]
    )
    history = History(events)
    images = {key: image for key in history.keys if (image := history.image(key)) is not None}
    images = {key: image if inside(image.values) else without_values(image) for key, image in images.items()}
    return {key: silver_row(image) for key, image in images.items() if deletes == "soft" or not image.deleted}


def without_values(image: Image) -> Image:
    """What is left of a row outside of the table's filter, where deleted rows are kept."""
    return Image(dict(image.by.row["key"]), image.by, deleted=True)


def decodable(rows: list[Row]) -> list[Row]:
    if any(row["error"] == "incompatible_schema" for row in rows):
        raise Refused("SCHEMA_MISFIT")
    return [row for row in rows if row["error"] is None]


def event_of(row: Row) -> Event:
    return Event(
        op=row["op"],
        key=None if row["key"] is None else tuple(row["key"].values()),
        place=(row.get("epoch", FIRST_EPOCH), *row["position"]),
        tx=row["tx"],
        row=row,
        unavailable=tuple(row["unavailable"] or ()),
        snapshot=row.get("snapshot", "false"),
        unsent=tuple(row.get("unsent", ())),
    )


def with_dropped_columns(rows: Iterable[Row], *, policy: str) -> list[Row]:
    """The specification of `on_dropped_column`: columns that the newest writer does not send are dropped.

    `sent` of a row has the columns of its writer. What is created has no value there, unless it is the row of
    another key.
    """
    found = list(rows)
    events = [row for row in found if row["error"] is None and row["op"] in ROW_OPS]
    newest = max(events, key=lambda row: (row.get("epoch", FIRST_EPOCH), *row["position"]), default=None)
    dropped = [] if newest is None else [name for row in events for name in row["sent"] - newest["sent"]]
    if policy == "as_null":
        return [_without(row, dropped) for row in found]
    return [
        {**row, "unsent": [name for name in dict.fromkeys(dropped) if name not in row["sent"]]}
        if row["op"] in ("u", "r") or OLD_KEY in (row["headers"] or ())
        else row
        for row in found
    ]


def with_defaults(rows: Iterable[Row], defaults: Row) -> list[Row]:
    """The specification of a column that was added with a default: older rows have it at the source, too."""
    found = []
    for row in rows:
        older = {name: value for name, value in defaults.items() if name not in row["sent"]}
        found.append(row if row["after"] is None else {**row, "after": {**row["after"], **older}})
    return found


def _without(row: Row, dropped: list[str]) -> Row:
    if row["after"] is None:
        return row
    return {**row, "after": {name: None if name in dropped else row["after"][name] for name in row["after"]}}


def with_one_commit_per_transaction(events: list[Event]) -> list[Event]:
    """Rule 2.2: a transaction that is sent again may name another commit before it."""
    commits: dict[tuple[Any, ...], int] = {}
    for event in events:
        if event.tx is not None:
            commit = event.place[2]
            commits[transaction(event)] = min(commit, commits.get(transaction(event), commit))
    return [
        event
        if event.tx is None
        else replace(event, place=(*event.place[:2], commits[transaction(event)], *event.place[3:]))
        for event in events
    ]


def transaction(event: Event) -> tuple[Any, ...]:
    """Two servers that share a table may give one number to two of them."""
    return (event.row.get("topic"), *event.place[:2], event.tx)


class History:
    """All events of a table in the order of the source."""

    def __init__(self, events: list[Event]) -> None:
        self._of_keys: dict[Key, list[Event]] = {}
        for event in sorted(events, key=lambda event: event.place):
            if event.key is not None and event.op in ROW_OPS:
                self._of_keys.setdefault(event.key, []).append(event)
        self._clearings = sorted({clearing.place: clearing for clearing in clearings(events)}.items())

    @property
    def keys(self) -> list[Key]:
        return list(self._of_keys)

    def image(self, key: Key, *, below: Place | None = None) -> Image | None:
        """What the events of this key make of it, those from `below` on left out."""
        image: Image | None = None
        for _, image in self.steps(key, below=below):  # noqa: B007 - the last one is what is left
            pass
        return image

    def steps(self, key: Key, *, below: Place | None = None) -> Iterator[tuple[Event, Image | None]]:
        """Each event that the key meets, and what it makes of it."""
        image: Image | None = None
        for event in self._walk(key):
            if below is not None and event.place >= below:
                return
            does = self._without if event.op in ("t", "d") else self._after
            image = does(event, image)
            yield event, image

    def _without(self, event: Event, image: Image | None) -> Image | None:
        """A row that is deleted has the place of its delete; one that was cleared away keeps its own."""
        if event.op == "d":
            values = dict(event.row["key"]) if image is None else image.values
            return Image(values, event, unknown=() if image is None else image.unknown, deleted=True)
        if image is None or image.deleted:
            return image
        return replace(image, by=replace(image.by, op="t"), deleted=True)

    def _walk(self, key: Key) -> Iterator[Event]:
        """Clearings stand in every key's walk, once it has begun."""
        own = self._of_keys.get(key, [])
        since = own[0].place if own else ()
        between = [clearing for place, clearing in self._clearings if place > since]
        return iter(sorted([*own, *between], key=lambda event: event.place))

    def _after(self, event: Event, image: Image | None) -> Image:
        """§3: what the event does not say is what the row had, under its old key where that changed."""
        untold = {*event.unavailable, *event.unsent}
        values = {name: value for name, value in event.row["after"].items() if name not in untold}
        before = self._before_key_change(event) if event.op == "c" and untold else image
        if before is None or before.deleted:
            return Image({**values, **event.row["key"]}, event, unknown=event.unavailable)
        unknown = tuple(
            name for name in event.unavailable if name in before.unknown or name not in before.values
        )
        kept = {name: before.values.get(name) for name in untold}
        return Image({**kept, **values, **event.row["key"]}, event, unknown=unknown)

    def _before_key_change(self, created: Event) -> Image | None:
        """A key change is a delete and a create of one place in the log.

        Where columns of the row are the key, it may leave that one as it was.
        """
        for key, events in self._of_keys.items():
            for event in events:
                if event.op == "d" and same_place_in_log(event, created):
                    return self.image(key, below=event.place)
        return None


def same_place_in_log(one: Event, other: Event) -> bool:
    places = [(each.row.get("topic"), each.place[0], each.tx, each.place[4]) for each in (one, other)]
    return places[0] == places[1]


def clearings(events: list[Event]) -> Iterator[Event]:
    """Truncates, and the beginning of a repeated snapshot that is complete: what it does not have is gone,
    unless rows that were sent behind it are of an older epoch."""
    for event in events:
        if event.op == "t":
            yield event
        elif is_full_snapshot(event) and event.snapshot in SNAPSHOT_ENDS:
            own = [each for each in events if is_full_snapshot(each) and each.tx == event.tx]
            if any(each.row.get("overtaken") for each in own):
                continue
            began = min(each.place[0] for each in own)
            ended = min((each for each in own if each.snapshot in SNAPSHOT_ENDS), key=commit_time)
            yield replace(ended, op="t", key=None, place=(began, 0, 0, 0, 0, 0, 0))


def commit_time(event: Event) -> int:
    return int(event.row.get("ts", 0))


def is_full_snapshot(event: Event) -> bool:
    return event.place[1] == 0 and event.op != "t"


def silver_row(image: Image) -> Row:
    by = image.by
    return {
        **image.values,
        "_cdc_op": by.op,
        "_cdc_position": list(by.place),
        "_cdc_tx_id": by.tx,
        "_cdc_incomplete": list(image.unknown) or None,
        "_cdc_deleted": image.deleted,
    }

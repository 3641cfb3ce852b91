"""The specification of silver: which epoch bronze rows belong to, and what is left of a batch of them
(`cdc-semantics` §1, §2, §9).

Plain Python over plain values; Spark says the same in its own words, and `tests/cases` hold both to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

Row = dict[str, Any]
Silver = dict[tuple[Any, ...], Row]
FIRST_EPOCH = 0


class Refused(Exception):  # noqa: N818 - an outcome, named as the cases name it
    """Silver stays as it was."""

    def __init__(self, code: str, *, kind: str | None = None, at: str | None = None) -> None:
        super().__init__(code, kind, at)
        self.code, self.kind, self.at = code, kind, at


ROW_OPS = ("c", "r", "u", "d")
IGNORED_OPS = (None, "m")  # a tombstone follows its delete, a logical message is no row

UNSUPPORTED: dict[str, Callable[[Row], bool]] = {
    "truncate": lambda row: row["op"] == "t",
    "unavailable (TOAST) value": lambda row: row["op"] in ROW_OPS and bool(row["unavailable"]),
    "key change": lambda row: (
        row["op"] in ROW_OPS and bool({"__debezium.newkey", "__debezium.oldkey"} & set(row["headers"] or ()))
    ),
}


def merged(silver: Silver, batch: Iterable[Row]) -> Silver:
    """Silver after `batch`; raises `Refused` for what this release cannot apply."""
    rows = list(batch)
    decoded = [row for row in rows if row["error"] is None]
    refuse_unsupported(decoded)
    if any(row["error"] == "incompatible_schema" for row in rows):
        raise Refused("SCHEMA_MISFIT")
    events = [row for row in decoded if row["op"] not in IGNORED_OPS]
    after = dict(silver)
    for key in {tuple(row["key"].values()) for row in events}:
        newest = max((row for row in events if tuple(row["key"].values()) == key), key=position)
        if key in after and position(newest) <= tuple(after[key]["_cdc_position"]):
            continue  # rule 2.4: an equal position is the same event
        if newest["op"] == "d":
            after.pop(key, None)
        else:
            after[key] = silver_row(newest)
    return after


def position(row: Row) -> tuple[int, ...]:
    """Rule 2.1, compared from left to right; the Kafka offset is not part of it."""
    return row.get("epoch", FIRST_EPOCH), *row["position"]


def silver_row(row: Row) -> Row:
    system = {"_cdc_op": row["op"], "_cdc_position": list(position(row)), "_cdc_tx_id": row["tx"]}
    return {**row["after"], **row["key"], **system}


def refuse_unsupported(rows: list[Row]) -> None:
    for kind, is_met in UNSUPPORTED.items():
        met = [row for row in rows if is_met(row)]
        if met:
            raise Refused("UNSUPPORTED_EVENT", kind=kind, at=met[0]["at"])


@dataclass
class Epochs:
    """Rule 2.5 for a table of one topic: which source epoch the rows of each drain belong to."""

    newest: int = FIRST_EPOCH
    of_snapshot: dict[int, int] = field(default_factory=dict)
    """Transaction of a full snapshot -> its epoch."""
    met: set[tuple[int, int]] = field(default_factory=set)
    """(partition, transaction of a full snapshot whose rows were there)"""
    standing: dict[int, int] = field(default_factory=dict)
    """Partition -> the epoch of its next row."""
    held: dict[int, int] = field(default_factory=dict)
    """Partition -> the epoch of its last row."""
    past: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Partition -> of what was streamed in its epoch: the highest place, whether any event names its past."""

    def drain(self, rows: Iterable[Row]) -> list[Row]:
        """The same rows with their `epoch`; the drain ends behind the last one of each partition."""
        found = list(rows)
        partitions: dict[int, list[Row]] = {}
        for row in found:
            partitions.setdefault(int(row["at"].partition("@")[0]), []).append(row)
        for partition in partitions:
            self.standing.setdefault(partition, self.newest)
        epochs = {}
        for partition, own in sorted(partitions.items()):
            if any(self.begins_a_snapshot(partition, row) for row in own):
                self.standing[partition] = self.held.get(
                    partition, self.standing[partition]
                )  # until it shows
            for place, row in enumerate(own):
                epochs[row["at"]] = self.epoch(partition, row, behind=own[place + 1 :])
        self.past = {p: past for p, past in self.past.items() if self.standing[p] == self.newest}
        self.standing = dict.fromkeys(self.standing, self.newest)
        return [{**row, "epoch": epochs[row["at"]]} for row in found]

    def epoch(self, partition: int, row: Row, *, behind: list[Row]) -> int:
        if self.begins_a_snapshot(partition, row):
            self.met.add((partition, row["tx"]))
            taken = self.newest in self.of_snapshot.values()
            known = self.of_snapshot.get(row["tx"], None if taken else self.newest)
            first = known is not None and self.held.get(partition, -1) < known
            self.enter(partition, known if first else None)
            self.of_snapshot[row["tx"]] = self.standing[partition]
        elif is_streamed(row):
            past = self.past.get(partition)
            run = [row, *takewhile(lambda r: not is_streamed(r) or not names_its_past(r), behind)]
            highest = max(each["position"][3] for each in run if is_streamed(each))
            if past and past["named"] and not names_its_past(row) and highest > past["highest"]:
                self.enter(partition, None if self.standing[partition] == self.newest else self.newest)
            past = self.past.setdefault(partition, {"highest": 0, "named": False})
            past["highest"] = max(past["highest"], row["position"][3])
            past["named"] |= names_its_past(row)
        self.held[partition] = self.standing[partition]
        return self.standing[partition]

    def begins_a_snapshot(self, partition: int, row: Row) -> bool:
        return is_full_snapshot(row) and row["tx"] is not None and (partition, row["tx"]) not in self.met

    def enter(self, partition: int, epoch: int | None) -> None:
        """A new epoch where there is none to enter."""
        if epoch is None:
            self.newest = epoch = self.newest + 1
        if epoch != self.standing[partition]:
            self.past.pop(partition, None)
        self.standing[partition] = epoch


def is_full_snapshot(row: Row) -> bool:
    return row["position"] is not None and row["position"][0] == 0


def is_streamed(row: Row) -> bool:
    return row["position"] is not None and (row["position"][0], row["position"][2]) == (1, 1)


def names_its_past(row: Row) -> bool:
    return bool(row["position"][1] != 0)

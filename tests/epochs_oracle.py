"""The specification of source epochs: which incarnation bronze rows belong to (`cdc-semantics` rule 2.5).

Plain Python over plain values; Spark says the same in its own words, and `tests/cases` hold both to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from oracle import FIRST_EPOCH, Row  # type: ignore[import-not-found]


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

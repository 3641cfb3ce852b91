"""The specification of source epochs: which incarnation bronze rows belong to (`cdc-semantics` rule 2.5).

Plain Python over plain values; Spark says the same in its own words, and `tests/cases` hold both to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from oracle import FIRST_EPOCH, Row  # type: ignore[import-not-found]


@dataclass(frozen=True, order=True)
class Since:
    """Events that were sent behind the rows of a snapshot name this commit or a newer one.

    Rows of a snapshot that interrupted a stream name the commit that the connector had come to. Those of a
    new slot name none, and stand where the slot begins; then the first events behind them name none either.
    """

    commit: int
    is_new_slot: bool

    @classmethod
    def of(cls, row: Row) -> Since:
        _, commit, _, place, *_ = row["position"]
        return cls(commit or place, is_new_slot=commit == 0)

    def is_certainly_above(self, row: Row) -> bool:
        """Whether the row was certainly sent before the snapshot."""
        if row["position"] is None or is_full_snapshot(row):
            return False
        _, commit, _, place, *_ = row["position"]
        return commit < self.commit if commit else not self.is_new_slot and place < self.commit

    def is_passed_by(self, row: Row, *, tx: int) -> bool:
        """Whether the row was sent behind the snapshot of `tx`; of two snapshots at one place the later one
        has the higher transaction."""
        if row["position"] is None:
            return False
        if is_full_snapshot(row):
            return row["tx"] is not None and (Since.of(row).commit, row["tx"]) > (self.commit, tx)
        _, commit, _, place, *_ = row["position"]
        return is_streamed(row) and max(commit, place) >= self.commit


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
    """Partition -> of what was streamed in its epoch: the highest place, the last commit that an event named,
    whether any event names its past."""
    since: dict[int, Since] = field(default_factory=dict)
    """Epoch -> what was sent behind the rows of its snapshot, where the log tells."""
    read: list[Row] = field(default_factory=list)
    """Of the drains before, with their epochs."""
    overtaken: set[int] = field(default_factory=set)
    """Transactions of snapshots that were met behind rows that were sent after them: these have an older
    epoch, and are no rows that the snapshot lacks."""

    def drain(self, rows: Iterable[Row]) -> list[Row]:
        """The same rows with their `epoch`; the drain ends behind the last one of each partition."""
        found = list(rows)
        partitions: dict[int, list[Row]] = {}
        for row in found:
            partitions.setdefault(int(row["at"].partition("@")[0]), []).append(row)
        for partition in partitions:
            self.standing.setdefault(partition, self.newest)
        expected, before = self.newest, {p: self.held.get(p, self.newest) for p in partitions}
        shown = {p: self.shown_in(p, own) for p, own in sorted(partitions.items())}
        epochs: dict[str, int] = {}
        for partition, own in partitions.items():
            entered = self.entered(own, shown[partition], before=before[partition])
            if self.newest == expected and not shown[partition] and expected not in entered.values():
                entered[self.behind_certain(own, self.since.get(expected))] = expected
            epoch = before[partition]
            for place, row in enumerate(own):
                epoch = max(epoch, entered.get(place, epoch))
                epochs[row["at"]] = epoch
            self.held[partition] = self.standing[partition] = epoch
            self.note_again(partition, [row for row in own if epochs[row["at"]] == epoch], before=before)
        self.past = {p: past for p, past in self.past.items() if self.standing[p] == self.newest}
        self.standing = dict.fromkeys(self.standing, self.newest)
        told = [
            {
                **row,
                "epoch": epochs[row["at"]],
                "overtaken": is_full_snapshot(row) and row["tx"] in self.overtaken,
            }
            for row in found
        ]
        self.read += told
        return told

    def shown_in(self, partition: int, own: list[Row]) -> dict[int, int]:
        """The rows at which a snapshot or a slot shows that an epoch begins here, and which."""
        if any(self.begins_a_snapshot(partition, row) for row in own):
            self.standing[partition] = self.held.get(partition, self.standing[partition])  # until it shows
        shown, standing = {}, self.standing[partition]
        for place, row in enumerate(own):
            epoch = self.epoch(partition, row, behind=own[place + 1 :])
            if epoch != standing:
                shown[place] = standing = epoch
        return shown

    def entered(self, own: list[Row], shown: dict[int, int], *, before: int) -> dict[int, int]:
        """The same, and of snapshots that show no row here: behind the last event that was certainly sent
        before theirs, if any was sent behind it.

        Newest first: the first events of a newer slot name no commit, as if they stood before it.
        """
        found = dict(shown)
        for epoch in sorted(self.since, reverse=True):
            if epoch > before and epoch not in found.values():
                first = max((place for place, other in found.items() if other < epoch), default=0)
                until = min((place for place, other in found.items() if other > epoch), default=len(own))
                least = first + self.behind_certain(own[first:until], self.since[epoch])
                behind = [place for place in range(least, until) if is_placed(own[place])]
                found |= dict.fromkeys(behind[:1], epoch)
        return found

    @staticmethod
    def behind_certain(own: list[Row], since: Since | None) -> int:
        if since is None:
            return 0
        return max((place + 1 for place, row in enumerate(own) if since.is_certainly_above(row)), default=0)

    def note_again(self, partition: int, rows: list[Row], *, before: dict[int, int]) -> None:
        """Of what was streamed in an epoch that began in this drain."""
        if self.held[partition] != before[partition]:
            self.past.pop(partition, None)
            for row in filter(is_streamed, rows):
                self.note(partition, row)

    def note(self, partition: int, row: Row) -> None:
        past = self.past.setdefault(partition, {"highest": 0, "commit": 0, "named": False})
        past["highest"] = max(past["highest"], row["position"][3])
        past["commit"] = row["position"][1]
        past["named"] |= names_its_past(row)

    def epoch(self, partition: int, row: Row, *, behind: list[Row]) -> int:
        if self.begins_a_snapshot(partition, row):
            self.met.add((partition, row["tx"]))
            since, past = Since.of(row), self.past.get(partition)
            taken = self.newest in self.of_snapshot.values()
            known = self.of_snapshot.get(row["tx"], None if taken else self.newest)
            first = known is not None and self.held.get(partition, -1) < known
            self.enter(partition, known if first else None)
            self.of_snapshot[row["tx"]] = self.standing[partition]
            reached = 0 if past is None else past["highest" if since.is_new_slot else "commit"]
            if reached <= since.commit:  # or the source went back, and its log does not tell
                known_since = self.since.get(self.standing[partition], since)
                self.since[self.standing[partition]] = min(since, known_since)
                older = (each for each in self.read if each["epoch"] < self.standing[partition])
                if any(since.is_passed_by(each, tx=row["tx"]) for each in older):
                    self.overtaken.add(row["tx"])
        elif is_streamed(row):
            past = self.past.get(partition)
            run = [row, *takewhile(lambda r: not is_streamed(r) or not names_its_past(r), behind)]
            highest = max(each["position"][3] for each in run if is_streamed(each))
            if past and past["named"] and not names_its_past(row) and highest > past["highest"]:
                self.enter(partition, None if self.standing[partition] == self.newest else self.newest)
            self.note(partition, row)
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


def is_placed(row: Row) -> bool:
    """Streamed, or read by an incremental snapshot."""
    return row["position"] is not None and row["position"][0] == 1


def names_its_past(row: Row) -> bool:
    return bool(row["position"][1] != 0)

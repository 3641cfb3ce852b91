"""Progress in one partition of one topic incarnation: which offsets a table holds, and how that may change.

Rows present are `[floor, end)` minus `gaps` (`architecture` §5). Every change is a function from one
progress to the next; what would hold an offset twice, or forget that one is missing, raises `ValueError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

from cdc_lakehouse.contract import MAX_SOURCE_EPOCH

Span = tuple[int, int]
"""[from, until)."""


class Since(NamedTuple):
    """The commit from which on streamed events came behind a full snapshot (`cdc-semantics` rule 2.5)."""

    commit: int
    """Events behind the snapshot name this commit or a newer one; those before it name an older one."""
    is_new_slot: bool
    """The snapshot is that of a new slot, whose first events may name no commit."""
    overtaken: bool = False
    """Bronze had some of these events, or rows of a snapshot that was taken later, in an older epoch, before
    it met rows of the snapshot: then not every row of an older epoch was deleted."""


class Beginning(NamedTuple):
    """Where the source began anew, by the word of its own records (`cdc-semantics` rule 2.5)."""

    offset: int
    tx_id: int | None
    """Of the full snapshot whose rows begin here; None where the log goes on without its past: a new slot."""
    opened: bool
    """Whether a source epoch was opened for it, by this record or by those of its batch."""
    since: Since | None = None
    """None where it is not known: a new slot, a log that went back, ledgers of earlier releases."""

    @classmethod
    def of(cls, document: Sequence[Any]) -> Beginning:
        offset, tx_id, opened, *since = document
        return cls(offset, tx_id, opened, Since(*since[0]) if since and since[0] is not None else None)


Spot = tuple[int, int]
"""(commit before an event, its place in the source's log)."""


class Log(NamedTuple):
    """Of the streamed events of one epoch in one partition."""

    row: int
    """The highest place in the source's log."""
    knows_past: bool
    """Whether any event named the commit before its own."""
    last: Spot | None = None
    """Of the last event; ledgers of earlier releases do not tell it."""

    @classmethod
    def of(cls, document: Sequence[Any] | None) -> Log | None:
        if document is None:
            return None
        row, knows_past, *last = document
        return cls(row, knows_past, (last[0][0], last[0][1]) if last and last[0] else None)


@dataclass(frozen=True, slots=True)
class Progress:
    """Offsets of one partition. `gaps` are in order, apart from each other and within [floor, end)."""

    floor: int
    end: int
    gaps: tuple[Span, ...] = ()
    epochs: tuple[tuple[int, int], ...] = ()
    """`(from offset, source epoch)`: which incarnation of the source an offset belongs to.

    One may lie behind the end: where the drain is to end in which another partition saw the new epoch begin.
    """
    seen: int | None = None
    """The end that Kafka was seen to hold, where that is above `end`: a drain that has further to go."""

    mark: tuple[int, int] | None = None
    """`(offset, leader epoch)` of Kafka's log when a drain was planned: tells whether it was cut since."""
    known_to: int = 0
    """Rows below it were held before the table went back: though read again, their epochs are facts."""
    beginnings: tuple[Beginning, ...] = ()
    log: Log | None = None
    """Of the epoch at the end; None where no event of it was streamed yet."""
    turned: int | None = None
    """The newest offset whose event stands below the one before it, in one epoch (rule 2.7)."""
    reached: tuple[tuple[int, int], ...] | None = None
    """`(source epoch, highest place in the source's log)` that streamed events of each epoch have or name.
    Epochs before the source went back are not in it. None in ledgers of earlier releases."""

    @classmethod
    def begun(cls, at: int, *, epoch: int = 0) -> Progress:
        """Nothing read yet; the first record will be at `at` or behind."""
        return cls(floor=at, end=at, epochs=((at, epoch),) if epoch else ())

    @property
    def unread(self) -> Span | None:
        """What Kafka was seen to hold and the table has not read."""
        return None if self.seen is None else (self.end, self.seen)

    @property
    def epoch(self) -> int:
        """The newest source epoch, even if it begins behind the next record."""
        return self.epochs[-1][1] if self.epochs else 0

    def epoch_at(self, offset: int) -> int:
        return next((epoch for start, epoch in reversed(self.epochs) if start <= offset), 0)

    def reached_places(self) -> dict[int, int]:
        """Return source epoch -> the highest place that its streamed events have or name.

        Ledgers of earlier releases know it of the epoch at the end alone.
        """
        if self.reached is not None or self.log is None:
            return dict(self.reached or ())
        named = self.log.last[0] if self.log.last is not None else 0
        return {self.epoch_at(self.end - 1): max(self.log.row, named)}

    def present(self) -> tuple[Span, ...]:
        return subtracted([(self.floor, self.end)], self.gaps)

    def drained(self, span: Span) -> Progress:
        """A drain adds what lies directly behind the end, and nothing else."""
        start, until = span
        if start != self.end or until < start:
            raise ValueError(f"a drain of {span} does not start at the end of {self}")
        known_to = self.known_to if until < self.known_to else 0
        return replace(self, end=until, seen=self._seen_beyond(until), known_to=known_to)

    def filled(self, span: Span) -> Progress:
        """A fill adds a part of one gap, which is none any more."""
        if not any(start <= span[0] < span[1] <= until for start, until in self.gaps):
            raise ValueError(f"{span} is not part of a gap of {self}")
        return replace(self, gaps=subtracted(self.gaps, [span]))

    def skipped(self, until: int) -> Progress:
        """A person goes on at `until`: what lies between is a gap. Below the end nothing changes."""
        if until <= self.end:
            return self
        gaps = joined([*self.gaps, (self.end, until)])
        return replace(self, end=until, gaps=gaps, seen=self._seen_beyond(until))

    def without(self, spans: Iterable[Span]) -> Progress:
        """Rows of `spans` were taken out by somebody: gaps from now on."""
        lost = subtracted(list(spans), subtracted(list(spans), [(self.floor, self.end)]))
        return replace(self, gaps=joined([*self.gaps, *lost]))

    def rewound(self, end: int, *, gaps: Iterable[Span]) -> Progress:
        """Rows behind `end` are gone again, and `gaps` below it: a drain reads on from there.

        Epochs stay, since an offset keeps the one it had, and so does what Kafka was seen to hold.
        """
        end = max(self.floor, min(end, self.end))
        missing = subtracted(list(gaps), [(0, self.floor)])
        kept = subtracted(missing, subtracted(missing, [(self.floor, end)]))
        known_to = max(self.known_to, self.end) if end < self.end else self.known_to
        # What was the last event is not in the table any more: those that are read again may be below it.
        log = self.log._replace(last=None) if self.log is not None and end < self.end else self.log
        back = replace(self, end=end, gaps=kept, known_to=known_to, log=log)
        return back.having_seen(max(self.end, self.seen or 0))

    def restored(self, then: Progress) -> Progress:
        """Return the progress of a table that has the rows of `then` again, be it behind or ahead.

        Raise `ValueError` for one ahead whose rows would be of other source epochs by now.
        """
        if then.end <= self.end:
            return self.rewound(then.end, gaps=then.gaps)
        epochs = [tuple(b for b in each.epochs if b[0] < then.end) for each in (self, then)]
        if epochs[0] != epochs[1]:
            raise ValueError(f"rows up to {then.end} are of another source epoch by now: {self}")
        known_to = self.known_to if then.end < self.known_to else 0
        ahead = replace(then, epochs=self.epochs, mark=self.mark or then.mark, known_to=known_to, seen=None)
        return ahead.having_seen(max(self.seen or 0, then.seen or 0))

    def in_epoch(self, epoch: int, *, at: int | None = None) -> Progress:
        """From the end on, or from `at` below it, records belong to a newer incarnation of the source.

        Epochs that records opened behind `at` stay apart from each other, above it. Only for rows that no
        silver has applied: all others keep the epoch that they had.
        """
        if not self.epoch < epoch <= MAX_SOURCE_EPOCH:
            raise ValueError(f"epoch {epoch} does not follow that of {self}")
        start = self.end if at is None else max(self.floor, min(at, self.end))
        held = self.epochs_of_held()
        below = [boundary for boundary in held if boundary[0] < start]
        above = [(offset, number + epoch) for offset, number in held if offset > start]
        kept = tuple(each for each in self.beginnings if each.offset < self.end)
        epochs = (*below, (start, epoch), *above)
        renumbered = {number: number + epoch for offset, number in held if offset > start}
        reached = self.reached
        if reached is not None:
            reached = tuple((renumbered[old], place) for old, place in reached if old in renumbered)
        return replace(self, epochs=epochs, beginnings=kept, known_to=0, log=None, reached=reached)

    def noting(
        self,
        *,
        epochs: tuple[tuple[int, int], ...],
        beginnings: tuple[Beginning, ...],
        log: Log | None,
        turned: int | None = None,
        reached: tuple[tuple[int, int], ...] | None = None,
    ) -> Progress:
        """What the records behind the end say of their source; what is held keeps its epoch."""
        ahead = [boundary for boundary in epochs if boundary[0] >= self.end]
        ordered = all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(epochs))
        if not ordered or [*self.epochs_of_held(), *ahead] != list(epochs):
            raise ValueError(f"epochs {epochs} do not follow those of {self}")
        return replace(self, epochs=epochs, beginnings=beginnings, log=log, turned=turned, reached=reached)

    def epochs_of_held(self) -> tuple[tuple[int, int], ...]:
        """Boundaries below the end, which stay as they are."""
        return tuple(boundary for boundary in self.epochs if boundary[0] < self.end)

    @property
    def noticed(self) -> frozenset[int]:
        """Source epochs that nobody asked for: records opened them."""
        return frozenset(self.epoch_at(each.offset) for each in self.beginnings if each.opened)

    def having_seen(self, end: int) -> Progress:
        return replace(self, seen=max(self.seen or end, end) if end > self.end else self.seen)

    def marked(self, mark: tuple[int, int] | None) -> Progress:
        return replace(self, mark=mark or self.mark)

    def _seen_beyond(self, end: int) -> int | None:
        return self.seen if self.seen is not None and self.seen > end else None


def joined(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same offsets as few spans, in order; empty ones vanish."""
    found: list[Span] = []
    for start, until in sorted(spans):
        if start >= until:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], until))
        else:
            found.append((start, until))
    return tuple(found)


def shared(spans: Sequence[Span], others: Iterable[Span]) -> tuple[Span, ...]:
    """Offsets of `spans` that are in one of `others` too."""
    return subtracted(spans, subtracted(spans, others))


def subtracted(spans: Sequence[Span], others: Iterable[Span]) -> tuple[Span, ...]:
    """Offsets of `spans` that are in none of `others`."""
    left = list(joined(spans))
    for cut_start, cut_until in joined(others):
        left = [
            part
            for start, until in left
            for part in ((start, min(until, cut_start)), (max(start, cut_until), until))
            if part[0] < part[1]
        ]
    return tuple(left)

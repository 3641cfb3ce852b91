"""Epochs of one partition while the events of a batch are taken in their order."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from cdc_lakehouse.bronze.log_runs import LogRun
from cdc_lakehouse.bronze.written_file import SnapshotStart
from cdc_lakehouse.lake.progress import Beginning, Log, Progress, Since

Event = SnapshotStart | LogRun
_LAST = 2**63
Boundary = tuple[int, int]
"""(from offset, epoch)."""


@dataclass(slots=True)
class PartitionEpochs:
    source: str
    before: Progress
    first: int | None
    """The first record of the batch."""
    until: int
    """Where the drain ends: a partition that shows nothing of a new epoch enters it there, since by then
    Kafka has all that was sent before the record that opened it."""
    events: deque[Event]
    runs: Sequence[LogRun]
    """All runs of the batch, those of incremental snapshots too."""
    settled: list[Boundary]
    expected: Boundary | None
    """The newest epoch, where records have not shown yet where it begins here."""
    log: Log | None
    last: int
    """Of the records that `log` is about."""
    end: int
    turned: int | None
    """The newest offset whose event stands below the one before it."""
    life: int
    """The newest epoch that a person opened: places in the log below it are those of another life."""
    reached: dict[int, int]
    """Epoch -> the highest place in the log that its streamed events have or name, in earlier batches."""
    forgotten: int = 0
    """Places of epochs below it say nothing any more."""
    beginnings: list[Beginning] = field(default_factory=list)
    streamed: list[LogRun] = field(default_factory=list)
    """Runs of the stream that were taken."""

    @classmethod
    def before_the_batch(
        cls,
        source: str,
        before: Progress,
        *,
        noticed: Collection[int],
        first: int | None,
        end: int | None,
        drained: int | None,
        events: Iterable[Event],
        chunks: Iterable[LogRun],
    ) -> Self:
        beginnings = {beginning.offset for beginning in before.beginnings}
        settled, expected, facts = [], None, max(before.end, before.known_to)
        for start, epoch in before.epochs:
            # A person's decision counts. A boundary that was only expected gives way to the records.
            if start < facts or start <= before.floor or start in beginnings or epoch not in noticed:
                settled.append((start, epoch))
            else:
                expected = start, epoch
        ends = before.end if end is None else end
        in_order = list(_in_order(events, known={beginning.tx_id for beginning in before.beginnings}))
        runs = [event for event in in_order if isinstance(event, LogRun)]
        return cls(
            source=source,
            before=before,
            first=first,
            until=max(ends, drained or 0),
            events=deque(in_order),
            runs=sorted([*runs, *chunks], key=lambda run: run.first),
            settled=settled,
            expected=expected,
            log=before.log,
            last=before.end - 1,
            end=ends,
            turned=before.turned,
            life=max((epoch for _, epoch in before.epochs if epoch not in noticed), default=0),
            reached=before.reached_places(),
            beginnings=list(before.beginnings),
        )

    def turn(self) -> tuple[int, int, int]:
        """Return the order of the next event: plain runs first, then snapshots and new slots as in the log.

        A slot whose place is that of a snapshot comes behind it, since the snapshot explains it.
        """
        event = self.events[0]
        if isinstance(event, SnapshotStart):
            return 1, 0 if event.place is None else event.place[0] or event.place[1], event.tx_id
        return (1, event.row, _LAST) if self.begins_anew(event) else (0, 0, 0)

    def epoch_of(self, tx_id: int) -> int | None:
        """Return the epoch of the full snapshot of this transaction, if its rows were met here."""
        epochs = [_at(self.settled, each.offset) for each in self.beginnings if each.tx_id == tx_id]
        return max(epochs, default=None)

    def fits(self, epoch: int, *, at: int) -> bool:
        """Whether the rows of a full snapshot, from `at` on, would be the first ones of `epoch` here."""
        epoch_below = self._epoch_held_below(at)
        return epoch_below is None or epoch_below < epoch

    def holds_nothing_below(self, offset: int) -> bool:
        return self._epoch_held_below(offset) is None

    def holds_rows_of(self, epoch: int) -> bool:
        """Of batches before this one."""
        return self.before.end > self.before.floor and _at(self.settled, self.before.end - 1) == epoch

    def has_snapshot_in(self, epoch: int) -> bool:
        return any(
            each.tx_id is not None and _at(self.settled, each.offset) == epoch for each in self.beginnings
        )

    def is_on_its_way(self, epoch: int, *, at: int) -> bool:
        """Whether it has still to show where it enters `epoch`."""
        return self.expected is not None and self.expected[1] == epoch and _at(self.settled, at) < epoch

    def begins_anew(self, run: LogRun) -> bool:
        """Whether the log goes on in `run` without its past, where it had one (rule 2.5 b)."""
        log = None if self._boundary_within(self.last, run.first) else self.log
        return not run.knows_past and log is not None and log.knows_past and run.row > log.row

    def expect(self, epoch: int) -> None:
        """Enter `epoch` where the drain ends, unless a record says before that where it begins."""
        self.expected = self.until, epoch

    def straddled(self, sinces: Mapping[int, Since]) -> tuple[int, ...]:
        """Return the commits at which runs have to be split before `settle` can place `sinces` exactly."""
        commits = {sinces[epoch].commit for epoch in self._find_unplaced(sinces)}
        return tuple(
            sorted(
                commit
                for commit in commits
                if any(run.commits[1] > 0 and run.commits[0] < commit <= run.commits[1] for run in self.runs)
            )
        )

    def settle(self, sinces: Mapping[int, Since]) -> None:
        """Enter epochs whose snapshots have no row here, each behind the last event sent before its rows.

        Where no event was sent behind the snapshot, the boundary stays at the end of the drain, or moves
        behind that last event.
        """
        end_epoch = _at(self.settled, self.end)
        for epoch in self._find_unplaced(sinces):
            first = max((at for at, other in self.settled if other < epoch), default=0)
            until = min((at for at, other in self.settled if other > epoch), default=self.end)
            runs = [run for run in self.runs if first <= run.first < until]
            least = max([first, *(run.last + 1 for run in runs if _is_before(run, sinces[epoch]))])
            at = next((run.first for run in runs if run.first >= least), None)
            if at is not None:
                kept = [boundary for boundary in self.settled if boundary[0] != at]
                self.settled = sorted([*kept, (at, epoch)])
            if self.expected is not None and self.expected[1] == epoch:
                self.expected = (max(self.expected[0], least), epoch) if at is None else None
        if _at(self.settled, self.end) != end_epoch:
            self._begin_log_at(self.settled[-1][0])

    def _find_unplaced(self, sinces: Mapping[int, Since]) -> list[int]:
        """Return epochs that are newer than the rows before the batch, and that nothing here has shown yet.

        Newest first: the first events of a newer slot name no commit, as if they came before it.
        """
        newest = _at(self.settled, self.before.end - 1)
        shown = {epoch for _, epoch in self.settled}
        return sorted((epoch for epoch in sinces if epoch > newest and epoch not in shown), reverse=True)

    def _begin_log_at(self, offset: int) -> None:
        """Build the log again from the runs at `offset` and behind."""
        self.log = None
        for run in self.streamed:
            if run.first >= offset:
                self._extend_log(run)

    def sinces(self) -> Iterable[tuple[int, Since]]:
        """Yield the epochs of the snapshots whose rows were met here, with what separates their events."""
        for beginning in self.beginnings:
            if beginning.since is not None:
                yield _at(self.settled, beginning.offset), beginning.since

    def agrees_with(self, since: Since) -> bool:
        """Return whether the events that were streamed here before the snapshot precede it in the log, too.

        If not, the source went back, and its log does not separate events before it from those behind it.
        """
        if self.log is None:
            return True
        highest = self.log.row if since.is_new_slot else (self.log.last or (0, 0))[0]
        return highest <= since.commit

    def holds_behind(self, since: Since, *, below: int) -> bool:
        """Return whether batches before this one have events that were sent behind a snapshot, in any epoch
        `below` that of its rows.

        What was sent before it was committed by then, and stands below it. The first events of a slot name no
        commit, so only their place tells.
        """
        return any(epoch < below and place >= since.commit for epoch, place in self.reached.items())

    def forget_places(self, *, below: int) -> None:
        """Forget how far the log went in epochs `below`: the source went back since, and goes there again."""
        self.forgotten = below
        self.reached = {epoch: place for epoch, place in self.reached.items() if epoch >= below}

    def holds_newer_snapshot(self, taken: tuple[int, int], *, below: int) -> bool:
        """Return whether earlier batches hold rows of a later snapshot, in an epoch `below` that of this one.

        `taken` is the place in the log and the transaction of this snapshot, which the drain meets second.
        """
        return any(
            beginning.since is not None
            and beginning.tx_id is not None
            and (beginning.since.commit, beginning.tx_id) > taken
            and self.life <= _at(self.settled, beginning.offset) < below
            for beginning in self.before.beginnings
        )

    def has_streamed_behind(self, since: Since) -> bool:
        """Return whether an event so far, in the batch too, was sent behind a snapshot."""
        return _reaches_behind(self.log, since)

    def enter(
        self, epoch: int, *, at: int, tx_id: int | None, opened: bool, since: Since | None = None
    ) -> None:
        if _at(self.settled, at) < epoch:
            before = [boundary for boundary in self.settled if boundary[0] < at]
            behind = [boundary for boundary in self.settled if boundary[0] > at and boundary[1] > epoch]
            self.settled = [*before, (at, epoch), *behind]
        if self.expected is not None:
            self.expected = (self.until, self.expected[1]) if self.expected[1] > epoch else None
        self.beginnings.append(Beginning(at, tx_id, opened, since))

    def take(self, run: LogRun) -> None:
        """A run that reaches across a boundary counts for the epoch behind it: that may open one too many."""
        self.turned = self._turned_in(run)
        if self._boundary_within(self.last, run.last):
            self.log = None
        self._extend_log(run)
        self.streamed.append(run)
        self.last = run.last

    def progress(self) -> Progress:
        """Return the progress before the batch, with the facts of the batch."""
        ends_anew = self._boundary_within(self.last, self.end - 1)
        return self.before.noting(
            epochs=tuple(self._boundaries()),
            beginnings=tuple(self.beginnings),
            log=None if ends_anew else self.log,
            turned=self.turned,
            reached=tuple(sorted(self._collect_reached().items())),
        )

    def _collect_reached(self) -> dict[int, int]:
        """Return `reached` with the events of the batch. A run across a boundary counts for the older epoch:
        at worst, a snapshot that is met later removes nothing."""
        reached, boundaries = dict(self.reached), self._boundaries()
        for run in self.streamed:
            epoch = _at(boundaries, run.first)
            if epoch >= self.forgotten:
                reached[epoch] = max(reached.get(epoch, 0), run.row, run.commits[1])
        return reached

    def _extend_log(self, run: LogRun) -> None:
        log = self.log
        self.log = Log(
            row=run.row if log is None else max(run.row, log.row),
            knows_past=run.knows_past or (log is not None and log.knows_past),
            last=run.ends,
        )

    def _turned_in(self, run: LogRun) -> int | None:
        if run.turned is not None:
            return run.turned
        log = None if self._boundary_within(self.last, run.first) else self.log
        is_below = log is not None and log.last is not None and run.begins < log.last
        return run.first if is_below else self.turned

    def _boundaries(self) -> list[Boundary]:
        if self.expected is None:
            return self.settled
        return [*(boundary for boundary in self.settled if boundary[0] < self.expected[0]), self.expected]

    def _boundary_within(self, behind: int, to: int) -> bool:
        return any(behind < start <= to for start, _ in self._boundaries())

    def _epoch_held_below(self, offset: int) -> int | None:
        """Of the last row below `offset`; None without such a row."""
        if self.first is not None and self.first < offset:
            return _at(self.settled, offset - 1)
        return _at(self.settled, self.before.end - 1) if self.before.end > self.before.floor else None


def _in_order(events: Iterable[Event], *, known: set[int | None]) -> Iterable[Event]:
    """By offset; of a snapshot only its first row, which several files may think they have."""
    for event in sorted(events, key=lambda e: e.offset if isinstance(e, SnapshotStart) else e.first):
        if isinstance(event, SnapshotStart):
            if event.tx_id in known:
                continue
            known.add(event.tx_id)
        yield event


def _is_before(run: LogRun, since: Since) -> bool:
    """Return whether all events of a run, which straddles nothing, were sent before the rows of a snapshot.

    The first events behind a new slot name no commit: a run without commits may be on either side of it. It
    was sent before a snapshot that continued a stream if it stands below that snapshot in the log: above it
    stand the first events of a later slot.
    """
    if run.commits[1] == 0:
        return not since.is_new_slot and run.row < since.commit
    return run.commits[1] < since.commit


def _reaches_behind(log: Log | None, since: Since) -> bool:
    """Return whether an event of the log names the commit of a snapshot, or stands behind it in the log.

    What was sent before a snapshot was committed by then, and stands below it. The first events of a slot
    name no commit, so only their place tells.
    """
    return log is not None and log.last is not None and max(log.last[0], log.row) >= since.commit


def _at(boundaries: Iterable[Boundary], offset: int) -> int:
    return max((epoch for start, epoch in boundaries if start <= offset), default=0)

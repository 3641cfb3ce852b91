"""Source epochs that records open (`cdc-semantics` rule 2.5): a decision on values, no I/O.

The workers' lines say where rows of a full snapshot begin in a partition, and where streamed events do not
know the commit before them. What follows for the source epoch of each offset goes into the ledger of the very
commit that adds these rows; `partition_epochs` holds what is true of one partition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cdc_lakehouse.bronze.log_runs import LogRun
from cdc_lakehouse.bronze.partition_epochs import Event, PartitionEpochs
from cdc_lakehouse.bronze.written_file import SnapshotStart, WrittenFile
from cdc_lakehouse.lake.ledger import Ledger, Ranges
from cdc_lakehouse.lake.progress import Progress, Since

FULL_SNAPSHOT = "full snapshot"
NEW_SLOT = "new slot"
EPOCHS_OPENED = "epochs_opened"
"""In `decisions` of a ledger and of a report."""
_Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Opened:
    epoch: int
    tx_id: int | None
    """Of the full snapshot; None where a slot began anew."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a batch says of its source."""

    ledger: Ledger
    """That of before the batch, with the epochs of what it is about to add."""
    opened: tuple[Opened, ...]
    straddling: Mapping[tuple[str, int], Sequence[int]] = field(default_factory=dict)
    """Topic and partition -> the commits at which its runs have to be split (`with_runs_apart`) to decide
    exactly where it enters an epoch."""

    def told(self) -> dict[str, Any]:
        """The ledger's `decisions`; empty where nothing was opened."""
        return {EPOCHS_OPENED: [_told(each, self.ledger) for each in self.opened]} if self.opened else {}


def decide_epochs(
    ledger: Ledger,
    files: Iterable[WrittenFile],
    *,
    sources: Mapping[str, str],
    planned: Ranges,
    added: Ranges,
) -> Decision:
    """Of a batch of `files` that adds `added`, in a drain that is to read `planned`.

    `sources` tells the incarnation of each topic that is read. The same batch again decides the same.
    """
    walk = _Walk.begun(ledger, list(files), sources=sources, planned=planned, added=added)
    while walk.goes_on():
        pass
    straddling = walk.settle()
    known = {source: dict(partitions) for source, partitions in ledger.sources.items()}
    for (source, number), partition in walk.partitions.items():
        known.setdefault(source, {})[number] = partition.progress()
    topics = {source: topic for topic, source in sources.items()}
    split = {(topics[source], number): commits for (source, number), commits in straddling.items()}
    return Decision(replace(ledger, sources=known), tuple(walk.opened), split)


def all_opened(commits: Iterable[Ledger]) -> dict[str, Any]:
    """Of all commits of a run, as its report tells them."""
    opened = [each for ledger in commits for each in ledger.decisions.get(EPOCHS_OPENED, ())]
    return {EPOCHS_OPENED: opened} if opened else {}


@dataclass(slots=True)
class _Walk:
    """All partitions of the topics that are read, each with its events of the batch in their order.

    What began anew is told from one partition to the next by the transaction of its snapshot. So snapshots
    and new slots are taken in the order of the log, whichever partition they are in.
    """

    partitions: dict[_Place, PartitionEpochs]
    newest: int
    opened: list[Opened] = field(default_factory=list)

    @classmethod
    def begun(
        cls,
        ledger: Ledger,
        files: Sequence[WrittenFile],
        *,
        sources: Mapping[str, str],
        planned: Ranges,
        added: Ranges,
    ) -> _Walk:
        noticed = _noticed(ledger)
        firsts, events, chunks = _firsts(files, sources), _events(files, sources), _chunks(files, sources)
        partitions = {}
        for source in sources.values():
            read, more = planned.get(source, {}), added.get(source, {})
            known = ledger.sources.get(source, {})
            for number in sorted({*known, *read, *more}):
                start = (read.get(number) or more.get(number) or (0, 0))[0]
                place = source, number
                partitions[place] = PartitionEpochs.before_the_batch(
                    source,
                    known.get(number) or Progress.begun(start, epoch=ledger.epoch),
                    noticed=noticed,
                    first=firsts.get(place),
                    end=more[number][1] if number in more else None,
                    drained=read[number][1] if number in read else None,
                    events=events.get(place, []),
                    chunks=chunks.get(place, []),
                )
        return cls(partitions, ledger.epoch)

    def goes_on(self) -> bool:
        """Take the next events; those of one snapshot together."""
        heads = [each for each in self.partitions.values() if each.events]
        if not heads:
            return False
        next_ = min(each.turn() for each in heads)
        group = [each for each in heads if each.turn() == next_]
        starts = [(each, event) for each in group if isinstance(event := each.events[0], SnapshotStart)]
        for each in group:
            event = each.events.popleft()
            if isinstance(event, LogRun):
                self._take_run(each, event)
        if starts:
            self._take_snapshot(starts)
        return True

    def _take_run(self, partition: PartitionEpochs, run: LogRun) -> None:
        if partition.begins_anew(run):
            opens = not self._shows_the_newest(partition, run)
            if opens:
                self._open(None, {each.source for each in self.partitions.values()})
            partition.enter(self.newest, at=run.first, tx_id=None, opened=opens)
        partition.take(run)

    def _shows_the_newest(self, partition: PartitionEpochs, run: LogRun) -> bool:
        """Whether the new slot that begins with `run` is that of the newest epoch, which the partition has
        still to enter.

        It is a later slot where events before the run were already sent behind the snapshot of that epoch.
        """
        if not partition.is_on_its_way(self.newest, at=run.first):
            return False
        others = (each for each in self.partitions.values() if each.source == partition.source)
        sinces = [since for other in others for epoch, since in other.sinces() if epoch == self.newest]
        return not sinces or not partition.has_streamed_behind(min(sinces))

    def _take_snapshot(self, starts: Sequence[tuple[PartitionEpochs, SnapshotStart]]) -> None:
        tx_id, own = starts[0][1].tx_id, {partition.source for partition, _ in starts}
        known = [each.epoch_of(tx_id) for each in self.partitions.values()]
        wanted = [max((epoch for epoch in known if epoch is not None), default=None)]
        if wanted == [None] and not self._is_taken(own):
            wanted.append(self.newest)
        fitting = (
            epoch
            for epoch in wanted
            if epoch is not None and all(each.fits(epoch, at=start.offset) for each, start in starts)
        )
        epoch = next(fitting, None)
        opens = epoch is None
        if epoch is None:
            anew = all(each.holds_nothing_below(start.offset) for each, start in starts)
            epoch = self._open(tx_id, own if anew else {each.source for each in self.partitions.values()})
        since = _since(starts)
        if since is not None:
            others = [each for each in self.partitions.values() if each.source in own]
            overtaken = any(each.holds_behind(since, below=epoch) for each in others)
            since = since._replace(overtaken=overtaken)
        for each, start in starts:
            each.enter(epoch, at=start.offset, tx_id=tx_id, opened=opens, since=since)

    def settle(self) -> Mapping[_Place, Sequence[int]]:
        """Enter epochs in partitions that have no row of their snapshots, as far as their events tell.

        Returns the partitions whose runs straddle a snapshot, and at which commits: until these are split, a
        partition enters with the first of them.
        """
        sinces: dict[str, dict[int, Since]] = {}
        for (source, _), partition in self.partitions.items():
            for epoch, since in partition.sinces():
                known = sinces.setdefault(source, {})
                known[epoch] = min(since, known.get(epoch, since))
        straddling = {}
        for place, partition in self.partitions.items():
            commits = partition.straddled(sinces.get(place[0], {}))
            if commits:
                straddling[place] = commits
            partition.settle(sinces.get(place[0], {}))
        return straddling

    def _open(self, tx_id: int | None, sources: Collection[str]) -> int:
        """The newest epoch, which all partitions of `sources` are to enter."""
        self.newest += 1
        for partition in self.partitions.values():
            if partition.source in sources:
                partition.expect(self.newest)
        self.opened.append(Opened(self.newest, tx_id))
        return self.newest

    def _is_taken(self, own: Collection[str]) -> bool:
        """Whether the newest epoch is that of another snapshot, or holds rows of other topics: a topic that
        comes later is another log."""
        return any(
            each.has_snapshot_in(self.newest) if each.source in own else each.holds_rows_of(self.newest)
            for each in self.partitions.values()
        )


def _since(starts: Sequence[tuple[PartitionEpochs, SnapshotStart]]) -> Since | None:
    """What tells the events behind a snapshot from those before it, where the log can tell.

    Rows of a snapshot that interrupted a stream name the commit that the connector had come to. Behind a new
    slot they name none, and stand where the slot begins. A snapshot is taken at one place, whatever its
    partition.
    """
    places = [start.place for _, start in starts if start.place is not None]
    if not places:
        return None
    commit, row = min(places)
    since = Since(commit or row, is_new_slot=commit == 0)
    return since if all(each.agrees_with(since) for each, _ in starts) else None


def _firsts(files: Iterable[WrittenFile], sources: Mapping[str, str]) -> dict[_Place, int]:
    """Of each partition the first record of the batch."""
    found: dict[_Place, int] = {}
    for file in files:
        for span in file.spans:
            place = sources.get(span.topic, span.topic), span.partition
            found[place] = min(span.first, found.get(place, span.first))
    return found


def _events(files: Iterable[WrittenFile], sources: Mapping[str, str]) -> dict[_Place, list[Event]]:
    found: dict[_Place, list[Event]] = {}
    for file in files:
        events: tuple[Event, ...] = (*file.snapshots, *file.log_runs)
        for event in events:
            place = sources.get(event.topic, event.topic), event.partition
            found.setdefault(place, []).append(event)
    return found


def _chunks(files: Iterable[WrittenFile], sources: Mapping[str, str]) -> dict[_Place, list[LogRun]]:
    found: dict[_Place, list[LogRun]] = {}
    for file in files:
        for run in file.chunk_runs:
            found.setdefault((sources.get(run.topic, run.topic), run.partition), []).append(run)
    return found


def _noticed(ledger: Ledger) -> frozenset[int]:
    partitions = (progress for each in ledger.sources.values() for progress in each.values())
    return frozenset().union(*(progress.noticed for progress in partitions))


def _told(opened: Opened, ledger: Ledger) -> dict[str, Any]:
    entered = {
        source: {
            str(number): start
            for number, progress in partitions.items()
            for start, epoch in progress.epochs
            if epoch == opened.epoch
        }
        for source, partitions in ledger.sources.items()
    }
    return {
        "epoch": opened.epoch,
        "why": NEW_SLOT if opened.tx_id is None else FULL_SNAPSHOT,
        "tx_id": opened.tx_id,
        "from": {source: starts for source, starts in entered.items() if starts},
    }

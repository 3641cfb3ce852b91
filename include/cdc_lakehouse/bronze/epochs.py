"""Source epochs that records open (`cdc-semantics` rule 2.5): a decision on values, no I/O.

The lines of workers say where rows of a full snapshot begin in a partition, and where streamed events do not
name the commit before them. The source epoch of each offset follows from that and goes into the ledger of the
commit that adds these rows; `partition_epochs` has the rules of a single partition.
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
"""Key in `decisions` of a ledger and of a report."""
_Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Opened:
    epoch: int
    tx_id: int | None
    """Transaction of the full snapshot; None for a new slot."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Source epochs that a batch opens."""

    ledger: Ledger
    """The ledger before the batch, with the epochs of the rows that it is about to add."""
    opened: tuple[Opened, ...]
    straddling: Mapping[tuple[str, int], Sequence[int]] = field(default_factory=dict)
    """Topic and partition -> the commits at which its runs have to be split (`with_runs_apart`) to decide
    exactly where it enters an epoch."""

    def to_decisions(self) -> dict[str, Any]:
        """Return the ledger's `decisions`; empty where nothing was opened."""
        if not self.opened:
            return {}
        return {EPOCHS_OPENED: [_describe_opened(opened, self.ledger) for opened in self.opened]}


def decide_epochs(
    ledger: Ledger,
    files: Iterable[WrittenFile],
    *,
    sources: Mapping[str, str],
    planned: Ranges,
    added: Ranges,
) -> Decision:
    """Decide on a batch of `files` that adds `added`, in a drain that is to read `planned`.

    `sources` is the incarnation of each topic that is read. The same batch again decides the same.
    """
    walk = _Walk.begun(ledger, list(files), sources=sources, planned=planned, added=added)
    while walk.goes_on():
        pass
    straddling = walk.settle()
    after = {source: dict(partitions) for source, partitions in ledger.sources.items()}
    for (source, number), partition in walk.partitions.items():
        after.setdefault(source, {})[number] = partition.progress()
    topics = {source: topic for topic, source in sources.items()}
    split = {(topics[source], number): commits for (source, number), commits in straddling.items()}
    return Decision(replace(ledger, sources=after), tuple(walk.opened), split)


def all_opened(commits: Iterable[Ledger]) -> dict[str, Any]:
    """Return the epochs that the commits of a run opened, for its report."""
    opened = [document for ledger in commits for document in ledger.decisions.get(EPOCHS_OPENED, ())]
    return {EPOCHS_OPENED: opened} if opened else {}


@dataclass(slots=True)
class _Walk:
    """All partitions of the topics that are read, each with its events of the batch in their order.

    The transaction of a snapshot identifies it across partitions. So snapshots and new slots are taken in the
    order of the log, in whichever partition they are.
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
        noticed = _collect_noticed(ledger)
        firsts, events = _find_firsts(files, sources), _group_events(files, sources)
        chunks = _group_chunks(files, sources)
        partitions = {}
        for source in sources.values():
            to_read, to_add = planned.get(source, {}), added.get(source, {})
            before = ledger.sources.get(source, {})
            for number in sorted({*before, *to_read, *to_add}):
                start = (to_read.get(number) or to_add.get(number) or (0, 0))[0]
                place = source, number
                partitions[place] = PartitionEpochs.before_the_batch(
                    source,
                    before.get(number) or Progress.begun(start, epoch=ledger.epoch),
                    noticed=noticed,
                    first=firsts.get(place),
                    end=to_add[number][1] if number in to_add else None,
                    drained=to_read[number][1] if number in to_read else None,
                    events=events.get(place, []),
                    chunks=chunks.get(place, []),
                )
        return cls(partitions, ledger.epoch)

    def goes_on(self) -> bool:
        """Take the next events, those of one snapshot together; return whether there were any."""
        waiting = [partition for partition in self.partitions.values() if partition.events]
        if not waiting:
            return False
        turn = min(partition.turn() for partition in waiting)
        group = [partition for partition in waiting if partition.turn() == turn]
        starts = [
            (partition, event)
            for partition in group
            if isinstance(event := partition.events[0], SnapshotStart)
        ]
        for partition in group:
            event = partition.events.popleft()
            if isinstance(event, LogRun):
                self._take_run(partition, event)
        if starts:
            self._take_snapshot(starts)
        return True

    def _take_run(self, partition: PartitionEpochs, run: LogRun) -> None:
        if partition.begins_anew(run):
            opens = not self._shows_the_newest(partition, run)
            if opens:
                self._open(None, self._all_sources())
            partition.enter(self.newest, at=run.first, tx_id=None, opened=opens)
        partition.take(run)

    def _shows_the_newest(self, partition: PartitionEpochs, run: LogRun) -> bool:
        """Return whether the new slot that begins with `run` is that of the newest epoch, which the partition
        has still to enter.

        It is a later slot where events before the run were already sent behind the snapshot of that epoch.
        """
        if not partition.is_on_its_way(self.newest, at=run.first):
            return False
        siblings = (each for each in self.partitions.values() if each.source == partition.source)
        sinces = [since for sibling in siblings for epoch, since in sibling.sinces() if epoch == self.newest]
        return not sinces or not partition.has_streamed_behind(min(sinces))

    def _take_snapshot(self, starts: Sequence[tuple[PartitionEpochs, SnapshotStart]]) -> None:
        tx_id, sources = starts[0][1].tx_id, {partition.source for partition, _ in starts}
        epochs = [partition.epoch_of(tx_id) for partition in self.partitions.values()]
        candidates = [max((epoch for epoch in epochs if epoch is not None), default=None)]
        if candidates == [None] and not self._is_taken(sources):
            candidates.append(self.newest)
        fitting = (
            epoch
            for epoch in candidates
            if epoch is not None
            and all(partition.fits(epoch, at=start.offset) for partition, start in starts)
        )
        epoch = next(fitting, None)
        opens = epoch is None
        if epoch is None:
            is_first = all(partition.holds_nothing_below(start.offset) for partition, start in starts)
            epoch = self._open(tx_id, sources if is_first else self._all_sources())
        since = self._judge_since(starts, sources, epoch=epoch)
        for partition, start in starts:
            partition.enter(epoch, at=start.offset, tx_id=tx_id, opened=opens, since=since)

    def _judge_since(
        self,
        starts: Sequence[tuple[PartitionEpochs, SnapshotStart]],
        sources: Collection[str],
        *,
        epoch: int,
    ) -> Since | None:
        """Return what separates the events behind a snapshot of `epoch`, and whether they overtook it.

        None where the log does not tell, also where the source went back: it goes through the same places
        again, so how far it went before says nothing any more.
        """
        since, tx_id = _find_since(starts), starts[0][1].tx_id
        if since is None:
            return None
        siblings = [partition for partition in self.partitions.values() if partition.source in sources]
        if not all(partition.agrees_with(since) for partition, _ in starts):
            for partition in siblings:
                partition.forget_places(below=epoch)
            return None
        overtaken = any(
            partition.holds_behind(since, below=epoch)
            or partition.holds_newer_snapshot((since.commit, tx_id), below=epoch)
            for partition in siblings
        )
        return since._replace(overtaken=overtaken)

    def _all_sources(self) -> set[str]:
        return {partition.source for partition in self.partitions.values()}

    def settle(self) -> Mapping[_Place, Sequence[int]]:
        """Enter epochs in partitions that have no row of their snapshots, as far as their events show it.

        Returns the partitions whose runs straddle a snapshot, and at which commits: until these runs are
        split, a partition enters the epoch with the first of them.
        """
        sinces: dict[str, dict[int, Since]] = {}
        for (source, _), partition in self.partitions.items():
            for epoch, since in partition.sinces():
                by_epoch = sinces.setdefault(source, {})
                by_epoch[epoch] = min(since, by_epoch.get(epoch, since))
        straddling = {}
        for place, partition in self.partitions.items():
            commits = partition.straddled(sinces.get(place[0], {}))
            if commits:
                straddling[place] = commits
            partition.settle(sinces.get(place[0], {}))
        return straddling

    def _open(self, tx_id: int | None, sources: Collection[str]) -> int:
        """Open the next epoch, which all partitions of `sources` are to enter, and return it."""
        self.newest += 1
        for partition in self.partitions.values():
            if partition.source in sources:
                partition.expect(self.newest)
        self.opened.append(Opened(self.newest, tx_id))
        return self.newest

    def _is_taken(self, sources: Collection[str]) -> bool:
        """Return whether the newest epoch is that of another snapshot, or has rows of other topics.

        A topic that comes later is another log.
        """
        return any(
            partition.has_snapshot_in(self.newest)
            if partition.source in sources
            else partition.holds_rows_of(self.newest)
            for partition in self.partitions.values()
        )


def _find_since(starts: Sequence[tuple[PartitionEpochs, SnapshotStart]]) -> Since | None:
    """Return what separates the events behind a snapshot from those before it; None where the log cannot.

    Rows of a snapshot that interrupted a stream name the commit that the connector had reached. Behind a new
    slot they name none, and have the place at which the slot begins. A snapshot is taken at one place for all
    partitions.
    """
    places = [start.place for _, start in starts if start.place is not None]
    if not places:
        return None
    commit, row = min(places)
    return Since(commit or row, is_new_slot=commit == 0)


def _find_firsts(files: Iterable[WrittenFile], sources: Mapping[str, str]) -> dict[_Place, int]:
    """Return the first record of the batch in each partition."""
    firsts: dict[_Place, int] = {}
    for file in files:
        for span in file.spans:
            place = sources.get(span.topic, span.topic), span.partition
            firsts[place] = min(span.first, firsts.get(place, span.first))
    return firsts


def _group_events(files: Iterable[WrittenFile], sources: Mapping[str, str]) -> dict[_Place, list[Event]]:
    by_place: dict[_Place, list[Event]] = {}
    for file in files:
        events: tuple[Event, ...] = (*file.snapshots, *file.log_runs)
        for event in events:
            place = sources.get(event.topic, event.topic), event.partition
            by_place.setdefault(place, []).append(event)
    return by_place


def _group_chunks(files: Iterable[WrittenFile], sources: Mapping[str, str]) -> dict[_Place, list[LogRun]]:
    by_place: dict[_Place, list[LogRun]] = {}
    for file in files:
        for run in file.chunk_runs:
            by_place.setdefault((sources.get(run.topic, run.topic), run.partition), []).append(run)
    return by_place


def _collect_noticed(ledger: Ledger) -> frozenset[int]:
    """Return the epochs that records have opened so far."""
    partitions = (progress for of_source in ledger.sources.values() for progress in of_source.values())
    return frozenset().union(*(progress.noticed for progress in partitions))


def _describe_opened(opened: Opened, ledger: Ledger) -> dict[str, Any]:
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

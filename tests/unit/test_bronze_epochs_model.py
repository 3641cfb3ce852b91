"""Epochs against a model: made-up histories of a source, read in any number of drains and batches."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, pairwise

from epoch_batches import Bronze, Read, Record, Streamed  # type: ignore[import-not-found]
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from orders_in_kafka import TOPIC  # type: ignore[import-not-found]

PARTITIONS = 3


@dataclass(frozen=True, slots=True)
class Sent:
    incarnation: int
    record: Record


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, Sent]]:
    """(partition, what is sent to it) in the order of sending: each incarnation reads, then streams.

    It is a new slot, or one that goes on behind a snapshot by signal.
    """
    sent, lsn = [], 100
    past = None
    places = st.lists(st.integers(0, PARTITIONS - 1), max_size=5)
    for incarnation in range(draw(st.integers(1, 4))):
        lsn += 10
        past = lsn if past is not None and draw(st.booleans()) else None
        read = Read(10 * (1 + incarnation), commit=past, slot=lsn)
        for place in [*draw(places), draw(st.integers(0, PARTITIONS - 1))]:
            sent.append((place, Sent(incarnation, read)))
        for place in draw(places):
            lsn += 10
            was_open = draw(st.sampled_from([0, 0, 15]))
            sent.append((place, Sent(incarnation, Streamed(past, lsn - was_open))))
            past = draw(st.sampled_from([past, lsn + 5]))
    return sent


def drained(
    bronze: Bronze, ends: list[int], logs: dict[int, list[Sent]], until: list[int] | None = None
) -> list[int]:
    """Read on to `ends` in one batch, of a drain that goes on `until` there; the epochs that were opened."""
    records = {
        (TOPIC, number): [sent.record for sent in log[bronze.end(TOPIC, number) : ends[number]]]
        for number, log in logs.items()
    }
    goal = {(TOPIC, number): (until or ends)[number] for number in logs}
    opened: list[int] = bronze.takes({place: some for place, some in records.items() if some}, until=goal)
    return opened


def by_partition(sent: list[tuple[int, Sent]]) -> dict[int, list[Sent]]:
    return {number: [each for place, each in sent if place == number] for number in range(PARTITIONS)}


def ordered(bronze: Bronze, logs: dict[int, list[Sent]]) -> None:
    """A snapshot wins over all that its partition held before."""
    for number, log in logs.items():
        epochs = bronze.epochs(number) if log else []
        assert epochs == sorted(epochs)
        incarnations = [
            [(each, epoch) for each, epoch in rows]
            for _, rows in groupby(zip(log, epochs, strict=True), key=lambda row: row[0].incarnation)
        ]
        for before, behind in pairwise(incarnations):
            if isinstance(behind[0][0].record, Read):
                assert before[-1][1] < behind[0][1]


@settings(max_examples=300, deadline=None)
@given(sent=histories(), data=st.data())
def test_drains_that_read_what_was_sent_so_far_open_few_epochs(sent, data):
    logs, bronze, opened = by_partition(sent), Bronze.empty(), []
    times = sorted({*data.draw(st.lists(st.integers(1, len(sent)), max_size=4)), len(sent)})
    for time in times:
        now = {number: len(log) for number, log in by_partition(sent[:time]).items()}
        opened += drained(bronze, list(now.values()), logs)

    ordered(bronze, logs)
    assert opened == list(range(1, len(opened) + 1))
    # One each, and one more at most where a slot shows in one partition before its snapshot in another.
    assert len(opened) <= 2 * (len({each.incarnation for _, each in sent}) - 1)


def survives(bronze: Bronze, logs: dict[int, list[Sent]], *, takes_ghosts: bool = True) -> None:
    """A complete snapshot takes away what is of an older epoch than all of its rows: nothing that was sent
    behind it, and all that was sent before it, unless that may have been the first event of its slot."""
    rows = [
        (each, epoch)
        for number, log in logs.items()
        for each, epoch in zip(log, bronze.epochs(number) if log else [], strict=True)
    ]
    for incarnation in {each.incarnation for each, _ in rows}:
        read = read_of(incarnation, rows)
        first = min(epoch for each, epoch in rows if each == read)
        for each, epoch in rows:
            if each.incarnation >= incarnation:
                assert (
                    epoch >= first
                    or is_overtaken(bronze, read)
                    or (not takes_ghosts and may_be_older(each, read))
                )
            elif not isinstance(each.record, Streamed) or each.record.commit is not None:
                assert epoch < first or not takes_ghosts


def may_be_older(each: Sent, read: Sent) -> bool:
    """Of a transaction that was open when the slot began, and names no commit: as if of an older slot."""
    record = each.record
    return isinstance(record, Streamed) and record.commit is None and record.lsn <= read.record.slot


def is_overtaken(bronze: Bronze, read: Sent) -> bool:
    partitions = bronze.ledger.sources[bronze.sources[TOPIC]].values()
    own = [each for progress in partitions for each in progress.beginnings if each.tx_id == read.record.tx_id]
    return any(each.since is not None and each.since.overtaken for each in own)


def read_of(incarnation: int, rows: list[tuple[Sent, int]]) -> Sent:
    return next(e for e, _ in rows if e.incarnation == incarnation and isinstance(e.record, Read))


@settings(max_examples=300, deadline=None)
@given(sent=histories(), data=st.data())
def test_a_snapshot_takes_away_what_was_sent_before_it_and_nothing_that_came_behind(sent, data):
    logs, bronze, read = by_partition(sent), Bronze.empty(), 0
    for time in sorted({*data.draw(st.lists(st.integers(1, len(sent)), max_size=4)), len(sent)}):
        ends = [len(log) for log in by_partition(sent[:time]).values()]
        for cut in sorted(data.draw(st.lists(st.integers(read, time), max_size=2))):  # batches of one drain
            drained(bronze, [len(log) for log in by_partition(sent[:cut]).values()], logs, ends)
        drained(bronze, ends, logs)
        read = time

    survives(bronze, logs)


@settings(max_examples=300, deadline=None)
@given(sent=histories(), data=st.data())
def test_a_snapshot_takes_nothing_that_came_behind_though_batches_cut_anywhere(sent, data):
    """Of drains of which none meets two snapshots."""
    logs, bronze = by_partition(sent), Bronze.empty()
    firsts = [n for n, (_, each) in enumerate(sent) if n and each.incarnation > sent[n - 1][1].incarnation]
    for time in (*firsts, len(sent)):
        ends = [len(log) for log in by_partition(sent[:time]).values()]
        for _ in range(data.draw(st.integers(0, 3))):
            some = [data.draw(st.integers(bronze.end(TOPIC, n), end)) for n, end in enumerate(ends)]
            drained(bronze, some, logs, ends)
        drained(bronze, ends, logs)

    survives(bronze, logs, takes_ghosts=False)


@settings(max_examples=300, deadline=None)
@given(sent=histories(), data=st.data())
def test_an_older_snapshot_that_is_met_behind_a_newer_one_takes_nothing_of_it(sent, data):
    """One backlog with any number of snapshots of one stream, in batches that cut each partition anywhere."""
    assume(all(each.incarnation == 0 or each.record.commit is not None for _, each in sent))
    logs, bronze = by_partition(sent), Bronze.empty()
    ends = [len(log) for log in logs.values()]
    for _ in range(data.draw(st.integers(0, 4))):
        some = [data.draw(st.integers(bronze.end(TOPIC, n), end)) for n, end in enumerate(ends)]
        drained(bronze, some, logs, ends)
    drained(bronze, ends, logs)

    survives(bronze, logs, takes_ghosts=False)


@settings(max_examples=300, deadline=None)
@given(sent=histories(), data=st.data())
def test_a_snapshot_met_late_takes_nothing_that_was_sent_behind_it(sent, data):
    """One backlog with any number of snapshots and of new slots, in batches that cut each partition anywhere.

    The first transaction of a slot, if it was open when the slot began, is not seen to overtake.
    """
    firsts = [each for _, each in sent if isinstance(each.record, Streamed) and each.record.commit is None]
    assume(
        not any(may_be_older(each, read_of(each.incarnation, [(e, 0) for _, e in sent])) for each in firsts)
    )
    logs, bronze = by_partition(sent), Bronze.empty()
    ends = [len(log) for log in logs.values()]
    for _ in range(data.draw(st.integers(0, 4))):
        some = [data.draw(st.integers(bronze.end(TOPIC, n), end)) for n, end in enumerate(ends)]
        drained(bronze, some, logs, ends)
    drained(bronze, ends, logs)

    survives(bronze, logs, takes_ghosts=False)


@settings(max_examples=300, deadline=None)
@given(sent=histories(), data=st.data())
def test_whatever_a_partition_is_late_with_its_snapshot_wins(sent, data):
    """Ends that no clock explains: slow brokers, killed runs, records behind the end that was planned."""
    logs, bronze = by_partition(sent), Bronze.empty()
    for _ in range(data.draw(st.integers(0, 5))):
        ends = [data.draw(st.integers(bronze.end(TOPIC, number), len(log))) for number, log in logs.items()]
        goal = [data.draw(st.integers(end, len(logs[number]))) for number, end in enumerate(ends)]
        drained(bronze, ends, logs, goal)
    drained(bronze, [len(log) for log in logs.values()], logs)

    ordered(bronze, logs)

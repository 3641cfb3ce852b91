"""The arithmetic of one partition, against a model that holds every offset by itself (`architecture` §5)."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cdc_lakehouse.lake.progress import Beginning, Progress, joined, subtracted

STEP = st.integers(0, 9)


class Partition(RuleBasedStateMachine):
    """A ledger, and beside it the multiset of rows that the steps would have left in a table."""

    @initialize(start=st.integers(0, 20), epoch=st.integers(0, 2))
    def begin(self, start: int, epoch: int) -> None:
        self.progress = Progress.begun(start, epoch=epoch)
        self.rows: list[int] = []
        self.missing: set[int] = set()
        self.epochs: dict[int, int] = {}

    def remember(self, span: tuple[int, int]) -> None:
        """An offset that was read before, and is read again, is of the epoch it was of."""
        for offset in range(*span):
            self.epochs.setdefault(offset, self.progress.epoch)

    @rule(length=STEP)
    def drain(self, length: int) -> None:
        span = (self.progress.end, self.progress.end + length)
        self.remember(span)
        self.progress = self.progress.drained(span)
        self.rows += range(*span)

    @rule(beyond=STEP)
    def see_more(self, beyond: int) -> None:
        before = self.progress.seen or 0
        self.progress = self.progress.having_seen(self.progress.end + beyond)
        assert (self.progress.seen or self.progress.end) >= before

    @rule(length=STEP)
    def accept_a_gap(self, length: int) -> None:
        span = (self.progress.end, self.progress.end + length)
        self.remember(span)
        self.progress = self.progress.skipped(span[1])
        self.missing |= set(range(*span))

    @precondition(lambda self: self.missing)
    @rule(data=st.data())
    def fill(self, data: st.DataObject) -> None:
        start, until = data.draw(st.sampled_from(self.progress.gaps))
        first = data.draw(st.integers(start, until - 1))
        span = (first, data.draw(st.integers(first + 1, until)))
        self.progress = self.progress.filled(span)
        self.rows += range(*span)
        self.missing -= set(range(*span))

    @rule(spans=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=3))
    def take_rows_out(self, spans: list[tuple[int, int]]) -> None:
        taken = {offset for span in spans for offset in range(*span)} & set(
            range(self.progress.floor, self.progress.end)
        )
        self.progress = self.progress.without(spans)
        self.rows = [row for row in self.rows if row not in taken]
        self.missing |= taken

    @rule(end=st.integers(0, 80))
    def restore_by_hand(self, end: int) -> None:
        known = max(self.progress.end, self.progress.seen or 0)
        self.progress = self.progress.rewound(end, gaps=self.progress.gaps)
        self.rows = [row for row in self.rows if row < self.progress.end]
        self.missing = {offset for offset in self.missing if offset < self.progress.end}
        assert known == max(self.progress.end, self.progress.seen or 0)

    @rule(step=st.integers(1, 3))
    def enter_a_new_epoch(self, step: int) -> None:
        self.epochs = {offset: n for offset, n in self.epochs.items() if offset < self.progress.end}
        self.progress = self.progress.in_epoch(self.progress.epoch + step)

    @invariant()
    def present_is_what_the_table_holds_and_nothing_twice(self) -> None:
        held = [offset for span in self.progress.present() for offset in range(*span)]
        assert held == sorted(self.rows)
        assert len(set(self.rows)) == len(self.rows)

    @invariant()
    def gaps_are_what_is_missing(self) -> None:
        assert self.progress.gaps == joined((offset, offset + 1) for offset in self.missing)

    @invariant()
    def nothing_lies_below_the_floor_or_behind_the_end(self) -> None:
        allowed = range(self.progress.floor, self.progress.end)
        assert all(offset in allowed for offset in [*self.rows, *self.missing])
        assert set(self.rows) | self.missing == set(allowed)

    @invariant()
    def what_was_seen_lies_behind_the_end(self) -> None:
        assert self.progress.seen is None or self.progress.seen > self.progress.end

    @invariant()
    def every_offset_keeps_the_epoch_it_came_in(self) -> None:
        for offset in range(self.progress.floor, self.progress.end):
            assert self.progress.epoch_at(offset) == self.epochs[offset]


Partition.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
test_a_table_holds_what_its_ledger_says = Partition.TestCase


PROGRESS = Progress(floor=2, end=10, gaps=((4, 6),), epochs=((2, 1), (7, 2)))


@pytest.mark.parametrize("span", [(9, 12), (11, 12), (10, 9)])
def test_a_drain_that_does_not_start_at_the_end_is_no_step(span):
    with pytest.raises(ValueError, match="does not start at the end"):
        PROGRESS.drained(span)


@pytest.mark.parametrize("span", [(3, 5), (5, 7), (6, 7), (4, 4), (0, 1), (12, 13)])
def test_a_fill_of_what_is_no_gap_is_no_step(span):
    with pytest.raises(ValueError, match="not part of a gap"):
        PROGRESS.filled(span)


@pytest.mark.parametrize("epoch", [0, 1, 2, 2**53, 2**63])
def test_an_epoch_never_comes_again_nor_leaves_its_bounds(epoch):
    with pytest.raises(ValueError, match="does not follow"):
        PROGRESS.in_epoch(epoch)


def test_an_epoch_that_begins_below_the_end_stays_below_those_that_records_opened_behind_it():
    held = Progress(floor=0, end=20, epochs=((3, 1), (12, 2)))

    assert held.in_epoch(4, at=8).epochs == ((3, 1), (8, 4), (12, 6))
    assert held.in_epoch(4, at=12).epochs == ((3, 1), (12, 4))
    assert held.in_epoch(4, at=25).epochs == ((3, 1), (12, 2), (20, 4))


def test_a_gap_that_lies_below_the_end_is_nothing_new():
    assert PROGRESS.skipped(10) == PROGRESS
    assert PROGRESS.skipped(3) == PROGRESS


def test_what_kafka_was_seen_to_hold_is_forgotten_when_it_was_read():
    further = PROGRESS.having_seen(20)

    assert (further.unread, further.drained((10, 15)).unread, further.drained((10, 20)).unread) == (
        (10, 20),
        (15, 20),
        None,
    )


def test_spans_are_joined_and_subtracted_as_sets():
    assert joined([(5, 6), (1, 3), (3, 4), (8, 8)]) == ((1, 4), (5, 6))
    assert subtracted([(1, 10)], [(0, 2), (4, 5), (9, 12)]) == ((2, 4), (5, 9))
    assert joined((offset, offset + 1) for offset in [3, 1, 2, 7]) == ((1, 4), (7, 8))


@pytest.mark.parametrize("epochs", [((2, 1),), ((2, 1), (8, 2)), ((2, 1), (7, 2), (12, 2)), ((2, 1), (7, 3))])
def test_what_is_held_keeps_its_epoch_whatever_later_records_say(epochs):
    with pytest.raises(ValueError, match="do not follow"):
        PROGRESS.noting(epochs=epochs, beginnings=(), log=None)


def test_records_may_open_an_epoch_from_the_end_on():
    noted = PROGRESS.noting(
        epochs=(*PROGRESS.epochs, (10, 3), (12, 4)), beginnings=(Beginning(10, 90, opened=True),), log=None
    )

    assert [noted.epoch_at(offset) for offset in (9, 10, 11, 12)] == [2, 3, 3, 4]
    assert (set(noted.noticed), noted.epoch) == ({3}, 4)


def test_epochs_above_the_place_where_a_person_opens_one_keep_how_far_their_log_went():
    begun = Progress(floor=0, end=8, epochs=((3, 1), (6, 2)), reached=((0, 500), (1, 600), (2, 700)))

    assert begun.in_epoch(10, at=4).reached == ((12, 700),)
    assert begun.in_epoch(10).reached == ()

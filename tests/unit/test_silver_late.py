"""What bronze misses, silver misses; what comes back to bronze comes to silver: many histories of two."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cdc_lakehouse.bronze.fill_plan import filled
from cdc_lakehouse.lake.applied import Applied
from cdc_lakehouse.lake.ledger import Kind, Ledger
from cdc_lakehouse.lake.progress import Progress
from cdc_lakehouse.lake.spans import each_span
from cdc_lakehouse.silver.plan import first_ledger, is_level, next_ledger, plan_late, plan_redo, plan_work

SOURCE = "shop.public.orders@id1"
STEP = st.integers(1, 6)


def bronze(progress: Progress) -> Ledger:
    return Ledger(Kind.BRONZE, "shop", "orders", "c1", seq=1, sources={SOURCE: {0: progress}})


class TwoLedgers(RuleBasedStateMachine):
    """`applied` is what silver owes to bronze, offset by offset.

    A merge that refolds may forget what bronze does not hold any more: keys are made of what it holds.
    """

    @initialize(start=st.integers(0, 5))
    def begin(self, start: int) -> None:
        self.bronze = bronze(Progress.begun(start))
        self.silver = first_ledger(self.bronze)
        self.applied: set[int] = set()
        self.past = [self.progress]

    @property
    def progress(self) -> Progress:
        return self.bronze.sources[SOURCE][0]

    @property
    def is_behind(self) -> bool:
        return (self.silver.end(SOURCE, 0) or 0) > self.progress.end

    def held(self) -> set[int]:
        return {offset for span in self.progress.present() for offset in range(*span)}

    def become(self, progress: Progress) -> None:
        self.bronze = replace(self.bronze, seq=self.bronze.seq + 1, sources={SOURCE: {0: progress}})
        self.past.append(progress)

    @rule(length=STEP)
    def drain(self, length: int) -> None:
        self.become(self.progress.drained((self.progress.end, self.progress.end + length)))

    @rule(length=STEP)
    def accept_a_gap(self, length: int) -> None:
        self.become(self.progress.skipped(self.progress.end + length))

    @rule(start=st.integers(0, 40), length=STEP)
    def delete_by_hand(self, start: int, length: int) -> None:
        self.become(self.progress.without([(start, start + length)]))

    @rule(data=st.data())
    def restore_by_hand(self, data: st.DataObject) -> None:
        back = data.draw(st.sampled_from(self.past))
        self.become(self.progress.rewound(back.end, gaps=back.gaps))

    @precondition(lambda self: self.progress.gaps)
    @rule(data=st.data())
    def fill(self, data: st.DataObject) -> None:
        start, until = data.draw(st.sampled_from(self.progress.gaps))
        first = data.draw(st.integers(start, until - 1))
        span = (first, data.draw(st.integers(first + 1, until)))
        self.bronze = filled(self.bronze, {SOURCE: {0: (span,)}}, attempt="f", seen_through=None)
        self.past.append(self.progress)

    @rule()
    def decode_again(self) -> None:
        span = (self.progress.floor, self.progress.end)
        known = self.silver.redone
        self.bronze = self.bronze.redecoded(1, {SOURCE: {0: span}}, attempt="r", known=known)

    @precondition(lambda self: not self.is_behind)
    @rule(refolded=st.booleans())
    def merge(self, refolded: bool) -> None:
        work, late = plan_work(self.bronze, self.silver), plan_late(self.bronze, self.silver)
        asked = [span for partitions in work.values() for span in partitions.values()]
        asked += [span for _, _, span in each_span(late)]
        if refolded or late or plan_redo(self.bronze, self.silver):
            self.applied &= self.held()
        self.applied |= self.held() & {offset for span in asked for offset in range(*span)}
        self.silver = next_ledger(
            self.silver,
            self.bronze,
            work,
            attempt="m",
            seen_through=None,
            applied=Applied(),
            refolded=refolded,
        )
        assert self.held() <= self.applied
        assert is_level(self.bronze, self.silver, holds=False)

    @invariant()
    def silver_claims_nothing_that_it_has_not_applied(self) -> None:
        own = self.silver.sources[SOURCE][0]
        assert {offset for span in own.present() for offset in range(*span)} <= self.applied

    @invariant()
    def who_is_level_has_applied_all_that_bronze_holds(self) -> None:
        if not self.is_behind and is_level(self.bronze, self.silver, holds=False):
            assert self.held() <= self.applied


TwoLedgers.TestCase.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
test_silver_has_applied_what_its_ledger_says = TwoLedgers.TestCase

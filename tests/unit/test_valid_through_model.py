"""Against a model of source and connector: a table has what it claims, and once all rest it claims all.

The connector hands records to a producer that delivers each partition in order, and partitions apart. It may
be in its snapshot while runs look; it is killed, and sends again what was not confirmed. Runs are killed
between look and drain and within a drain, and silver is behind by any number of runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from orders_in_kafka import SOURCE, ledger  # type: ignore[import-not-found]

from cdc_lakehouse.database.positions import LogPosition
from cdc_lakehouse.database.slots import Slot, SlotLook
from cdc_lakehouse.lake.claims import claim_of_bronze, claim_of_silver
from cdc_lakehouse.lake.confirmations import Confirmations, Reach
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.progress import Progress

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PARTITIONS = (0, 1, 2)


@dataclass
class Chain:
    log: list[int | None] = field(default_factory=list)
    """The partition of each change; None for one of another table, like a heartbeat."""
    kafka: dict[int, list[int]] = field(default_factory=lambda: {p: [] for p in PARTITIONS})
    """Partition -> what each record tells: all changes of its partition before this place of the log."""
    queued: list[tuple[int, int]] = field(default_factory=list)
    """(partition, what it tells), handed to the producer and not delivered."""
    read_to: int = 0
    """By the connector."""
    slot: Slot | None = None
    known: Confirmations = field(default_factory=Confirmations)
    bronze: Ledger = field(default_factory=lambda: ledger(p0=0, p1=0, p2=0))
    silver: Ledger = field(default_factory=lambda: ledger(p0=0, p1=0, p2=0))
    saw: dict[datetime, int] = field(default_factory=dict)
    """By the source's clock: how many changes a reader saw."""
    clock: datetime = NOON

    def write(self, number: int) -> None:
        self.log.append((*PARTITIONS, None)[number % 4])

    def snapshot(self, number: int) -> None:
        """Once: the slot stands at the log's end, and rows of all that is before it are on their way."""
        if self.slot is None:
            self.slot = Slot("shop", active=False, confirmed=LogPosition(len(self.log)), reader=None)
            self.queued = [(partition, len(self.log)) for partition in PARTITIONS]
            self.read_to = len(self.log)

    def start(self, number: int) -> None:
        """Or again, after a crash: what was not confirmed is read and sent once more."""
        if self.slot is None or self.slot.confirmed is None:
            return
        if self.snapshot_is_delivered:
            self.queued, self.read_to = [], self.slot.confirmed.number
        reader = (self.slot.reader or 0) + 1
        self.slot = replace(self.slot, active=True, reader=reader)

    def stop(self, number: int) -> None:
        if self.slot is not None and self.slot.reader is not None and self.snapshot_is_delivered:
            self.slot = replace(self.slot, active=False)

    @property
    def snapshot_is_delivered(self) -> bool:
        return all(self.kafka[partition] for partition in PARTITIONS)

    def send(self, number: int) -> None:
        if self.slot is None or not self.slot.active:
            return
        for _ in range(1 + number % 5):
            if self.read_to < len(self.log):
                partition = self.log[self.read_to]
                self.read_to += 1
                if partition is not None:
                    self.queued.append((partition, self.read_to))

    def deliver(self, number: int) -> None:
        """The oldest records of one partition."""
        partition = PARTITIONS[number % 3]
        for each in [own for own in self.queued if own[0] == partition][: 1 + number // 10]:
            self.queued.remove(each)
            self.kafka[partition].append(each[1])

    def confirm(self, number: int) -> None:
        """As Connect does: up to before the first record that is not acknowledged."""
        if self.slot is None or not self.slot.active or self.slot.confirmed is None:
            return
        below = min((tells - 1 for _, tells in self.queued), default=self.read_to)
        if self.snapshot_is_delivered:
            self.slot = replace(self.slot, confirmed=LogPosition(max(self.slot.confirmed.number, below)))

    def run(self, number: int) -> None:
        """`number` says how far it gets, and what goes on meanwhile."""
        self.clock += timedelta(minutes=1)
        at, self.saw[self.clock] = self.clock, len(self.log)
        if number % 2:
            self.write(number // 3)
        slots = () if self.slot is None else (self.slot,)
        look = SlotLook(at, LogPosition(len(self.log)), slots, frozenset())
        self.send(3), self.deliver(number)
        written = {p: len(records) for p, records in self.kafka.items()}
        self.deliver(number // 2)
        self.known = self.known.having_seen(look, address="db")
        confirmed = self.known.confirmed_in(look)
        if confirmed is not None:
            self.known = self.known.with_reach(confirmed, {"orders": Reach(0, {SOURCE: written})})
        until = {p: len(records) for p, records in self.kafka.items()}
        for partition in PARTITIONS[: 1 + number % 5]:
            self.bronze = grown(self.bronze, partition, until[partition])
        self.bronze = said(self.bronze, claim_of_bronze(self.bronze, self.known.of("orders")).valid)
        assert_true(self, self.bronze)

    def merge(self, number: int) -> None:
        for partition in PARTITIONS:
            self.silver = grown(self.silver, partition, self.bronze.end(SOURCE, partition) or 0)
        known = self.known.of("orders")
        claim = claim_of_silver(self.silver, known, bronze=self.bronze, open_cases=0)
        before, self.silver = self.silver.valid_through, said(self.silver, claim.valid)
        assert before is None or (claim.valid is not None and number_of(claim.valid) >= number_of(before))
        assert_true(self, self.silver)


def grown(before: Ledger, partition: int, end: int) -> Ledger:
    partitions = {**before.sources[SOURCE], partition: Progress(floor=0, end=end)}
    return replace(before, sources={SOURCE: partitions})


def said(before: Ledger, valid) -> Ledger:
    return replace(before, valid_through=valid)


def number_of(valid) -> int:
    return LogPosition.from_text(valid.position).number


def has(chain: Chain, table: Ledger, changes: int) -> bool:
    """Whether the table has these first changes of the log."""
    for partition in PARTITIONS:
        told = max(chain.kafka[partition][: table.end(SOURCE, partition)], default=0)
        if any(at >= told for at in range(changes) if chain.log[at] == partition):
            return False
    return True


def assert_true(chain: Chain, table: Ledger) -> None:
    valid = table.valid_through
    if valid is not None:
        assert has(chain, table, number_of(valid))
        assert valid.time is None or has(chain, table, chain.saw[datetime.fromisoformat(valid.time)])


LIFE = ("write", "write", "send", "deliver", "deliver", "confirm", "run", "run", "merge")
STEPS = st.lists(
    st.tuples(st.sampled_from((*LIFE * 3, "stop", "start")), st.integers(0, 59)), min_size=40, max_size=60
)
FIRST = st.lists(st.tuples(st.sampled_from(("write", "run", "deliver")), st.integers(0, 59)), max_size=6)
"""Around the snapshot; the connector may begin with the log before all rows of it are delivered."""


def lived(before, meanwhile, steps) -> Chain:
    chain = Chain()
    for action, number in [*before, ("snapshot", 0), *meanwhile, ("start", 0), *steps]:
        getattr(chain, action)(number)
    return chain


@settings(max_examples=300, deadline=None)
@given(FIRST, FIRST, STEPS)
def test_a_table_has_all_that_it_says_it_has(before, meanwhile, steps):
    lived(before, meanwhile, steps)


@settings(max_examples=50, deadline=None)
@given(FIRST, FIRST, STEPS)
def test_once_all_rest_they_say_all_within_three_runs(before, meanwhile, steps):
    chain = lived(before, meanwhile, steps)
    for number in range(300):
        chain.deliver(number)
    chain.start(0)
    rested = len(chain.log)
    for _ in range(3):
        chain.run(59)
        for number in range(200):
            chain.send(3), chain.deliver(number)
        chain.confirm(0)
    chain.run(59)
    chain.merge(0)

    valid = chain.silver.valid_through
    assert valid is not None
    assert valid.time is not None
    assert number_of(valid) >= rested

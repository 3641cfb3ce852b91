"""Against a model of source and connector: a table has what it claims, and once all rest it claims all.

The connector hands records to a producer that delivers each partition in order, and partitions apart. It may
be in its snapshot while runs look; it is killed, and sends again what was not committed. Runs are killed
within a drain, and silver is behind by any number of runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from orders_in_kafka import SOURCE, ledger  # type: ignore[import-not-found]

from cdc_lakehouse.database.positions import LogPosition, Moment
from cdc_lakehouse.lake.claims import claim_of_bronze, claim_of_silver
from cdc_lakehouse.lake.confirmations import Confirmation, Confirmations
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.progress import Progress

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PARTITIONS = (0, 1, 2)


@dataclass
class Sent:
    """A record that the connector has handed over, in its order."""

    partition: int | None
    """None: it goes to another topic."""
    tells: int
    """All changes of its partition before this place of the log."""
    position: int | None
    """Its offset says that all changes before this place came before it; None in a snapshot."""
    acknowledged: bool = False


@dataclass
class Chain:
    log: list[int | None] = field(default_factory=list)
    """The partition of each change; None for one of another table, like a heartbeat."""
    kafka: dict[int, list[int]] = field(default_factory=lambda: {p: [] for p in PARTITIONS})
    """Partition -> what each record tells."""
    sent: list[Sent] = field(default_factory=list)
    read_to: int | None = None
    """By the connector; None while it does not run."""
    committed: int | None = None
    """To Connect; None before that, and of a snapshot."""
    known: Confirmations = field(default_factory=Confirmations)
    bronze: Ledger = field(default_factory=lambda: ledger(p0=0, p1=0, p2=0))
    silver: Ledger = field(default_factory=lambda: ledger(p0=0, p1=0, p2=0))
    saw: dict[datetime, int] = field(default_factory=dict)
    """By the source's clock: how many changes a reader saw."""
    clock: datetime = NOON

    def write(self, number: int) -> None:
        self.log.append((*PARTITIONS, None)[number % 4])

    def start(self, number: int) -> None:
        """With a snapshot while no change behind one is committed; else with what is not committed."""
        if self.read_to is None:
            self.read_to = len(self.log) if self.committed is None else self.committed
            rows = PARTITIONS if self.committed is None else ()
            self.sent = [Sent(partition, self.read_to, None) for partition in rows]

    def kill(self, number: int) -> None:
        self.read_to, self.sent = None, []

    def send(self, number: int) -> None:
        for _ in range(1 + number % 5):
            if self.read_to is not None and self.read_to < len(self.log):
                partition, place = self.log[self.read_to], self.read_to
                self.read_to += 1
                # A heartbeat follows its commit, an event of a row only knows the one before.
                self.sent.append(Sent(partition, place + 1, place + 1 if partition is None else place))

    def deliver(self, number: int) -> None:
        """The oldest records of one topic and partition: the others may wait for ever."""
        partition = (*PARTITIONS, None)[number % 4]
        waiting = [each for each in self.sent if each.partition == partition and not each.acknowledged]
        for each in waiting[: 1 + number // 10]:
            each.acknowledged = True
            if partition is not None:
                self.kafka[partition].append(each.tells)

    def commit(self, number: int) -> None:
        """As Connect does: the offset of the last record before the first that is not acknowledged."""
        while self.sent and self.sent[0].acknowledged:
            self.committed = self.sent.pop(0).position

    def run(self, number: int) -> None:
        """`number` says how far it gets, and what goes on meanwhile."""
        self.clock += timedelta(minutes=1)
        at, self.saw[self.clock] = self.clock, len(self.log)
        if number % 2:
            self.write(number // 3)
        moment, committed = Moment(at, LogPosition(len(self.log))), self.committed
        self.send(3)
        self.deliver(number)
        written = {p: len(records) for p, records in self.kafka.items()}
        self.deliver(number // 2)
        self.known = self.known.having_seen(moment, address="db")
        if committed is not None:
            position = LogPosition(committed)
            found = Confirmation(position, self.known.time_at(position), 0, {SOURCE: written})
            self.known = self.known.observing({"orders": found})
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


LIFE = ("write", "write", "send", "deliver", "deliver", "commit", "run", "run", "merge")
STEPS = st.lists(
    st.tuples(st.sampled_from((*LIFE * 3, "kill", "start")), st.integers(0, 59)), min_size=40, max_size=60
)
FIRST = st.lists(st.tuples(st.sampled_from(("write", "run")), st.integers(0, 59)), max_size=4)


def lived(before, steps) -> Chain:
    chain = Chain()
    for action, number in [*before, ("start", 0), *steps]:
        getattr(chain, action)(number)
    return chain


@settings(max_examples=300, deadline=None)
@given(FIRST, STEPS)
def test_a_table_has_all_that_it_says_it_has(before, steps):
    lived(before, steps)


@settings(max_examples=50, deadline=None)
@given(FIRST, STEPS)
def test_once_all_rest_a_heartbeat_and_three_runs_say_all(before, steps):
    chain = lived(before, steps)
    chain.start(0)
    rested = len(chain.log)
    for _ in range(3):
        chain.run(59)
        chain.write(3)
        for number in range(200):
            chain.send(3)
            chain.deliver(number)
        chain.commit(0)
    chain.run(59)
    chain.merge(0)

    valid = chain.silver.valid_through
    assert valid is not None
    assert valid.time is not None
    assert number_of(valid) >= rested

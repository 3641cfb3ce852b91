"""What a difference means: late rows are never wrong, and what nothing can bring any more always is."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_lakehouse.database.positions import LogPosition
from cdc_lakehouse.lake.ends import has_read, is_of_the_past
from cdc_lakehouse.lake.ledger import Kind, Ledger
from cdc_lakehouse.lake.progress import Progress
from cdc_lakehouse.verification.differences import Difference, Key
from cdc_lakehouse.verification.differences import Kind as Differs
from cdc_lakehouse.verification.verdict import (
    Delivery,
    Judgement,
    Look,
    OpenKey,
    Verdict,
    Witness,
    delivered,
    judge,
)

TOPIC = "shop.public.items@id1"
KEYS = ("a", "b")
FIRST, SECOND = LogPosition(100), LogPosition(200)


def ledger(**ends: int) -> Ledger:
    sources = {TOPIC: {int(name[1:]): Progress(floor=0, end=end) for name, end in ends.items()}}
    return Ledger(kind=Kind.SILVER, pipeline="shop", table="items", cluster_id="c", sources=sources)


def changed(written_by: str = "7", kind: Differs = Differs.CHANGED) -> Difference:
    return Difference(("a",), kind, f"written by {written_by}")


def judged(difference: Difference, earlier: OpenKey | None, *, applied: bool) -> Judgement:
    known = {} if earlier is None else {earlier.key: earlier}
    return judge(
        [difference], known, Look(SECOND), has_applied=lambda look: applied and look.ends is not None
    )


def known() -> OpenKey:
    return OpenKey(("a",), "written by 7", Look(FIRST, {TOPIC: {0: 9}}))


def test_a_difference_that_is_seen_for_the_first_time_is_open():
    found = judged(changed(), None, applied=True)

    assert (found.wrong, found.late) == ((), (changed(),))
    assert found.keys == (OpenKey(("a",), "written by 7", Look(SECOND)),)


def test_what_stayed_though_silver_has_applied_the_mark_is_wrong():
    assert judged(changed(), known(), applied=True).wrong == (changed(),)


def test_what_stayed_while_silver_stands_before_the_mark_is_open_since_then():
    found = judged(changed(), known(), applied=False)

    assert (found.wrong, found.keys) == ((), (known(),))


def test_a_key_that_was_written_since_is_looked_at_anew():
    found = judged(changed("8"), known(), applied=True)

    assert found.wrong == ()
    assert found.keys[0].since.mark == SECOND


def test_a_doubled_row_is_wrong_at_once():
    assert judged(changed(kind=Differs.DOUBLED), None, applied=False).wrong != ()


def test_a_chunk_that_was_not_opened_keeps_a_table_from_being_equal():
    nothing = Judgement((), (), ())

    assert nothing.verdict(all_known=True) is Verdict.EQUAL
    assert nothing.verdict(all_known=False) is Verdict.OPEN


def test_every_partition_must_be_read_to_its_end():
    ends = {TOPIC: {0: 5, 1: 3, 2: 0}}

    assert has_read(ledger(p0=5, p1=3), ends)
    assert not has_read(ledger(p0=5, p1=2), ends)
    assert not has_read(ledger(p0=9), ends)


def test_nobody_has_read_to_an_end_that_nobody_knows():
    assert not has_read(ledger(p0=5), None)
    assert not has_read(ledger(p0=5), {})


def test_a_topic_that_was_made_again_settles_nothing():
    again = {**ledger(p0=5).sources, "shop.public.items@id2": {0: Progress.begun(0, epoch=1)}}
    newer = Ledger(kind=Kind.SILVER, pipeline="shop", table="items", cluster_id="c", sources=again)

    assert is_of_the_past(newer, {TOPIC: {0: 9}})
    assert not is_of_the_past(ledger(p0=5), {TOPIC: {0: 9}})


def test_only_looks_that_the_connector_has_passed_learn_where_kafka_ends():
    keys = (OpenKey(("a",), "x", Look(FIRST)), OpenKey(("b",), "x", Look(SECOND)))
    found = delivered(keys, [Delivery(LogPosition(150), {TOPIC: {0: 9}}, Witness.CONNECT)])

    assert [key.since.ends for key in found] == [{TOPIC: {0: 9}}, None]


def test_a_look_waits_for_the_first_delivery_that_serves_and_for_no_later_one():
    found = [
        Delivery(LogPosition(90), {TOPIC: {0: 3}}, Witness.CONNECT),
        Delivery(LogPosition(110), {}, Witness.CONNECT),
        Delivery(LogPosition(150), {TOPIC: {0: 9}}, Witness.CONNECT),
        Delivery(LogPosition(250), {TOPIC: {0: 12}}, Witness.CONNECT),
    ]
    waiting, told = OpenKey(("a",), "x", Look(FIRST)), known()

    assert [key.since.ends for key in delivered([waiting, told], found)] == [{TOPIC: {0: 9}}] * 2
    assert delivered([waiting], found[:2]) == (waiting,)


@dataclass
class World:
    """A source, its log in Kafka, and a silver that applies it in order; and somebody who looks."""

    log: list[tuple[str, int | None]] = field(default_factory=list)
    in_kafka: int = 0
    applied: int = 0
    committed: int = 0
    looks: dict[Key, OpenKey] = field(default_factory=dict)
    observed: list[Delivery] = field(default_factory=list)
    lost: int | None = None
    """The event that silver passes over."""

    def rows(self, until: int, *, without: int | None = None) -> dict[str, tuple[int, int]]:
        """Key -> value, and the event that wrote it."""
        found: dict[str, tuple[int, int]] = {}
        for number, (key, value) in enumerate(self.log[:until]):
            if number == without:
                continue
            found.pop(key, None)
            if value is not None:
                found[key] = (value, number)
        return found

    def look(self) -> Judgement:
        silver, source = self.rows(self.applied, without=self.lost), self.rows(len(self.log))
        found = [
            _difference(key, source.get(key), silver.get(key))
            for key in KEYS
            if _value(source.get(key)) != _value(silver.get(key))
        ]
        at = ledger(p0=self.applied)
        now = Look(LogPosition(len(self.log)))
        earlier = {key.key: key for key in delivered(self.looks.values(), self.observed)}
        told = judge(found, earlier, now, has_applied=lambda look: has_read(at, look.ends))
        self.looks = {key.key: key for key in told.keys}
        return told

    def observe(self) -> None:
        """What Connect has committed is never more than what is in Kafka; six observations are kept."""
        committed = self.committed
        found = Delivery(LogPosition(committed), {TOPIC: {0: self.in_kafka}}, Witness.CONNECT)
        self.observed = [*self.observed, found][-6:]


def _value(row: tuple[int, int] | None) -> int | None:
    return None if row is None else row[0]


def _difference(key: str, source: tuple[int, int] | None, silver: tuple[int, int] | None) -> Difference:
    if source is None:
        return Difference((key,), Differs.SURPLUS, f"absent, silver at {silver}")
    kind = Differs.MISSING if silver is None else Differs.CHANGED
    return Difference((key,), kind, f"written by {source[1]}")


WRITE = st.tuples(st.sampled_from(KEYS), st.sampled_from([None, 1, 2]))
STEP = st.one_of(WRITE, st.sampled_from(["deliver", "commit", "observe", "merge", "look"]))


@settings(max_examples=500, deadline=None)
@given(st.lists(STEP, max_size=40), st.randoms(use_true_random=False))
def test_a_silver_that_applies_its_log_is_never_wrong(steps, random):
    world = World()
    for step in steps:
        if step == "deliver":
            world.in_kafka = random.randint(world.in_kafka, len(world.log))
        elif step == "commit":
            world.committed = random.randint(world.committed, world.in_kafka)
        elif step == "observe":
            world.observe()
        elif step == "merge":
            world.applied = random.randint(world.applied, world.in_kafka)
        elif step == "look":
            assert world.look().wrong == ()
        else:
            world.log.append(step)


@settings(max_examples=500, deadline=None)
@given(st.lists(WRITE, min_size=1, max_size=20), st.data())
def test_a_silver_that_lost_an_event_is_equal_or_wrong_once_the_source_rests(writes, data):
    world = World(log=writes, lost=data.draw(st.integers(0, len(writes) - 1)))
    world.applied = world.in_kafka = data.draw(st.integers(0, len(writes)))
    world.look()
    world.in_kafka = world.committed = len(writes)
    world.look()
    world.observe()
    world.applied = len(writes)
    world.look()

    assert world.look().late == ()

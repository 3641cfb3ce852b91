"""A broker that comes back without the end of a log, which then grows beyond what a table has read."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest
from broker import Broker  # type: ignore[import-not-found]

from cdc_lakehouse.bronze.decided import NOTHING, Decided
from cdc_lakehouse.bronze.incarnations import doubtful
from cdc_lakehouse.bronze.plan import DrainPlan, plan_drain
from cdc_lakehouse.errors import LogCutError
from cdc_lakehouse.lake.ledger import Kind, Ledger

FIVE = [b"x"] * 5
CUT, WHOLE, READ_LATER = "t.cut_log", "t.whole_log", "t.log_of_many_leaders"


@pytest.fixture(scope="module")
def ledgers(stack, broker) -> dict[str, Ledger]:
    """Of ten records, read before the broker went away, and ten more, sent after it came back."""
    found = {}
    for topic in (CUT, WHOLE, READ_LATER):
        broker.create(topic)
        broker.send(topic, FIVE)
        broker.send(topic, FIVE)
        found[topic] = drained(plan(broker, Ledger(Kind.BRONZE, "p", "t", ""), topic))
    restarted(stack, cut=(CUT, 5))
    broker.wait_for(*found)
    for topic in found:
        broker.send(topic, FIVE * 2)
    found[READ_LATER] = drained(plan(broker, found[READ_LATER], topic=READ_LATER))
    restarted(stack)
    broker.wait_for(*found)
    broker.send(READ_LATER, FIVE)
    return found


def plan(broker: Broker, ledger: Ledger, topic: str, decided: Decided = NOTHING) -> DrainPlan:
    facts = broker.facts(topic)
    cut = broker.cluster.cut_logs(doubtful(ledger, [topic], facts=facts))
    return plan_drain(ledger, (topic,), facts=replace(facts, cut=cut), decided=decided)


def drained(plan: DrainPlan) -> Ledger:
    added = plan.added(plan.start, plan.until)
    after = plan.ledger.advanced(
        added, attempt="a", seen_through=None, planned=plan.planned, marks=plan.marks
    )
    known = Ledger.from_json(after.to_json(), table="t")
    assert known == after
    return after


def restarted(stack, *, cut: tuple[str, int] | None = None) -> None:
    stack.stop("kafka")
    if cut is not None:
        topic, offset = cut
        (log,) = stack.kafka.folder.rglob(f"{topic}-0/00000000000000000000.log")
        cut_at(log, offset)
    stack.start("kafka")


def cut_at(log: Path, offset: int) -> None:
    """Batches begin with their first offset and the length of the rest."""
    written, at = log.read_bytes(), 0
    while (found := struct.unpack_from(">qi", written, at))[0] < offset:
        at += 12 + found[1]
    log.write_bytes(written[:at])


def test_a_log_that_grew_beyond_the_ledger_again_is_noticed(broker, ledgers):
    with pytest.raises(LogCutError) as caught:
        plan(broker, ledgers[CUT], CUT)
    opened = plan(broker, ledgers[CUT], CUT, Decided(source_epoch=1))
    again = plan(broker, drained(opened), CUT)

    assert (caught.value.read, caught.value.held) == ("0 [0, 10)", "0 [0, 15); 0 was written anew from 5")
    assert (opened.start, opened.until) == ({CUT: {0: 0}}, {CUT: {0: 15}})
    assert again.is_idle


def test_another_leader_alone_cuts_no_log(broker, ledgers):
    found = plan(broker, ledgers[WHOLE], WHOLE)

    assert (found.start, found.until) == ({WHOLE: {0: 10}}, {WHOLE: {0: 20}})


def test_records_of_several_leaders_cut_no_log(broker, ledgers):
    found = plan(broker, ledgers[READ_LATER], READ_LATER)

    assert (found.start, found.until) == ({READ_LATER: {0: 20}}, {READ_LATER: {0: 25}})

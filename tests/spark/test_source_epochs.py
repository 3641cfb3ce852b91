"""A repeated snapshot on its way through two drains and merges: ledger, report, log, silver (rule 2.5)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from chain import Chain  # type: ignore[import-not-found]
from orders import OLD, ORDERS, SOURCE, TOPIC, know, notes  # type: ignore[import-not-found]

from cases.case_file import CaseEvent, SourcePosition  # type: ignore[import-not-found]
from cases.encoding import KafkaRecord  # type: ignore[import-not-found]
from cdc_lakehouse.config.models import SharedKeys
from cdc_lakehouse.errors import SupersededError
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.progress import Progress
from cdc_lakehouse.lake.state import read_state


def record(at: str, number: int, note: str, op: str, position: SourcePosition) -> KafkaRecord:
    after = {"id": number, "note": note}
    return OLD.record(CaseEvent(at=at, op=op, key={"id": number}, after=after, position=position))


def read(at: str, number: int, note: str, *, tx: int) -> KafkaRecord:
    """A row of the full snapshot of this transaction, which saw the log up to ten times its number."""
    place = SourcePosition(snapshot="true", sequence=(None, 10 * tx), lsn=10 * tx, tx=tx)
    return record(at, number, note, "r", place)


def streamed(at: str, number: int, note: str, *, lsn: int, after: int | None) -> KafkaRecord:
    place = SourcePosition(sequence=(after, lsn), lsn=lsn, tx=lsn, order=1)
    return record(at, number, note, "u", place)


BEFORE = [
    read("0@0", 1, "first", tx=30),
    streamed("0@1", 1, "streamed", lsn=510, after=500),
    read("1@0", 2, "first", tx=30),
    streamed("1@1", 2, "streamed", lsn=520, after=510),
    read("2@0", 3, "first", tx=30),
]
FIRST_DRAIN = [
    streamed("0@2", 1, "last of the old slot", lsn=530, after=520),
    read("0@3", 1, "again", tx=90),
    streamed("1@2", 2, "last of the old slot", lsn=540, after=530),
]
SECOND_DRAIN = [
    read("1@3", 2, "again", tx=90),
    streamed("1@4", 2, "new slot", lsn=905, after=None),
    streamed("2@1", 3, "new slot", lsn=910, after=905),
]


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    chain = Chain(engine, root=tmp_path_factory.mktemp("epochs").as_uri())
    know(chain)
    chain.ingest(ORDERS, BEFORE)
    chain.merge(ORDERS)
    return chain


@pytest.fixture
def drained(template: Chain, tmp_path: Path) -> Chain:
    return template.copied_to(tmp_path)


def ledger(chain: Chain) -> Ledger:
    state = read_state(chain.lake.bronze("orders"), table="orders")
    assert state is not None
    assert state.ledger is not None
    return state.ledger


def partitions(chain: Chain) -> dict[int, Progress]:
    return dict(ledger(chain).sources[SOURCE])


def epochs_of_silver(chain: Chain) -> dict[int, int]:
    return {row["id"]: row["_cdc_position"]["epoch"] for row in chain.silver(ORDERS)}


def test_a_repeated_snapshot_wins_in_each_partition_from_its_own_first_row_on(drained):
    first = drained.ingest(ORDERS, FIRST_DRAIN)

    boundaries = {"0": 3, "1": 3, "2": 1}
    opened: dict[str, Any] = {"epoch": 1, "why": "full snapshot", "tx_id": 90, "from": {SOURCE: boundaries}}
    assert first.decisions == {"epochs_opened": [opened]}
    assert ledger(drained).decisions == first.decisions
    drained.merge(ORDERS)
    assert notes(drained.silver(ORDERS)) == {1: "again", 2: "last of the old slot", 3: "first"}

    second = drained.ingest(ORDERS, SECOND_DRAIN)

    assert second.decisions == {}
    assert {p: progress.epochs for p, progress in partitions(drained).items()} == {
        0: ((3, 1),),
        1: ((3, 1),),
        2: ((1, 1),),
    }
    drained.merge(ORDERS)
    assert notes(drained.silver(ORDERS)) == {1: "again", 2: "new slot", 3: "new slot"}
    assert epochs_of_silver(drained) == {1: 1, 2: 1, 3: 1}


def test_silver_that_is_built_anew_holds_the_same_rows(drained):
    drained.ingest(ORDERS, FIRST_DRAIN)
    drained.merge(ORDERS)
    drained.ingest(ORDERS, SECOND_DRAIN)
    drained.merge(ORDERS)
    stepwise = drained.silver(ORDERS)
    drained.forget_silver(ORDERS)
    drained.merge(ORDERS)

    assert sorted(drained.silver(ORDERS), key=lambda row: row["id"]) == sorted(
        stepwise, key=lambda row: row["id"]
    )


def test_an_epoch_that_records_open_is_a_warning_that_says_why_and_from_where(drained, caplog):
    with caplog.at_level(logging.WARNING, logger="cdc_lakehouse.bronze.ingest"):
        drained.ingest(ORDERS, FIRST_DRAIN)
        drained.ingest(ORDERS, SECOND_DRAIN)

    (line,) = [each for each in caplog.records if each.message == "source epoch opened"]
    assert (line.epoch, line.why, line.tx_id) == (1, "full snapshot", 90)
    assert vars(line)["from"] == {SOURCE: {"0": 3, "1": 3, "2": 1}}


def test_of_two_attempts_that_meet_the_same_snapshot_one_opens_its_epoch(drained):
    planned = drained.plan(ORDERS, FIRST_DRAIN)
    drained.ingest(ORDERS, FIRST_DRAIN)
    once = ledger(drained)

    with pytest.raises(SupersededError):
        drained.ingest(ORDERS, FIRST_DRAIN, plan=planned)

    assert ledger(drained) == once


def test_a_snapshot_of_a_topic_that_comes_later_leaves_the_others_where_they_stand(drained):
    """The same table under another name: what its first snapshot says is newer than all that was streamed."""
    topics = (*ORDERS.topics, "renamed.orders")
    renamed = ORDERS.model_copy(update={"topics": topics, "shared_keys": SharedKeys.ONE_ROW})
    drained.registry.register("renamed.orders", keys=drained.registry.keys[TOPIC], values={})
    drained.registry.register("renamed.orders", keys={}, values=drained.registry.values[TOPIC])
    record = read("0@0", 1, "renamed", tx=95)
    other = KafkaRecord("renamed.orders", 0, 0, record.key, record.value, record.headers)

    result = drained.ingest(renamed, [other])
    drained.merge(renamed)

    (opened,) = result.decisions["epochs_opened"]
    assert opened["from"] == {"renamed.orders@topic-1": {"0": 0}}
    assert notes(drained.silver(ORDERS))[1] == "renamed"

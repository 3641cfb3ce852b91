"""Cases that somebody closes: the rows stay as they are, and nobody waits for them any more."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest
from chain import BY, Chain  # type: ignore[import-not-found]
from orders import NEW, ORDERS, SOURCE, TOPIC, know, notes, order  # type: ignore[import-not-found]

from cases.encoding import KafkaRecord  # type: ignore[import-not-found]
from cdc_lakehouse.application.per_table import UnfinishedError
from cdc_lakehouse.bronze import replay_job, table_decoder
from cdc_lakehouse.bronze.replay_job import replay_table
from cdc_lakehouse.config.models import OnQuarantine
from cdc_lakehouse.contract import Job, TableResult, TableStatus
from cdc_lakehouse.errors import (
    CaseUnknownError,
    DecisionOutdatedError,
    QuarantineOpenError,
    RegistryUnavailableError,
    SupersededError,
    UnknownKeyHeldError,
)
from cdc_lakehouse.inspection.quarantine import quarantine
from cdc_lakehouse.lake.quarantine import cases, open_cases
from cdc_lakehouse.lake.state import TableState, read_state
from cdc_lakehouse.registry.client import SchemaRegistry

HOLDS = ORDERS.model_copy(update={"on_quarantine": OnQuarantine.HOLD})
STOPS = ORDERS.model_copy(update={"on_quarantine": OnQuarantine.STOP})


def junk(record: KafkaRecord) -> KafkaRecord:
    return replace(record, value=b"junk")


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    chain = Chain(engine, root=tmp_path_factory.mktemp("closed").as_uri())
    know(chain)
    chain.ingest(ORDERS, [order(0, 1, note="one"), order(1, 2, note="two")])
    later = [
        junk(order(2, 1, op="u")),
        order(3, 1, op="u", note="one, newest"),
        junk(order(4, 3)),
        order(5, 2, op="u", note="unreadable", priority=1, writer=NEW),
        order(6, 2, op="u", note="two, newest"),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_decoder, "PERSISTS", timedelta())
        chain.ingest(ORDERS, later)
    return chain


@pytest.fixture
def holding(template: Chain, tmp_path: Path) -> Chain:
    """Seven records: two junk ones, of the keys 1 and 3, and one whose schema nobody knows, of the key 2."""
    return template.copied_to(tmp_path)


def named(chain: Chain, code: str, *, closed: bool = False) -> str:
    """All records of a code, as `make quarantine` names them."""
    found = quarantine(chain.root, [chain.application(ORDERS).pipeline])
    table, _, name = next(e.decision for e in found if (e.code, e.closed) == (code, closed)).partition("=")
    assert table == "orders"
    return name


def replay(chain: Chain, **decisions: tuple[str, ...]) -> TableResult:
    """The job, asked to `close_cases` or to `reopen_cases`."""
    application = chain.application(ORDERS, job=Job.QUARANTINE_REPLAY)
    application = replace(application, request=replace(application.request, **decisions))
    return replay_table(application, ORDERS, registry=cast(SchemaRegistry, chain.registry))


def close(chain: Chain, *asked: str) -> TableResult:
    return replay(chain, close_cases=tuple(f"orders={name}" for name in asked))


def close_codes(chain: Chain, *codes: str) -> TableResult:
    return close(chain, *(named(chain, code) for code in codes))


def uri(chain: Chain) -> str:
    return str(chain.lake.bronze("orders"))


def state(chain: Chain) -> TableState:
    found = read_state(uri(chain), table="orders")
    assert found is not None
    return found


def listed(chain: Chain) -> list[tuple[str, bool, int]]:
    found = quarantine(chain.root, [chain.application(ORDERS).pipeline])
    return [(each.code, each.closed, each.count) for each in found]


def test_a_closed_case_counts_no_more_and_its_row_stays(holding):
    before = {row["offset"]: row for row in holding.bronze(ORDERS)}

    result = close_codes(holding, "bad_frame")

    rows = {row["offset"]: row for row in holding.bronze(ORDERS)}
    assert (result.status, result.open_cases, open_cases(uri(holding))) == (TableStatus.ADVANCED, 1, 1)
    assert (result.counts["closed_by_hand"], result.counts["reopened"]) == (2, 0)
    assert listed(holding) == [("unknown_schema", False, 1), ("bad_frame", True, 2)]
    for offset, row in rows.items():
        is_closed = offset in {2, 4}
        told = row["decode_error"] and {**row["decode_error"]}
        by = told and told.pop("closed")
        assert bool(by) is is_closed
        attempt = {"attempt": by} if is_closed else {}
        assert {**row, "decode_error": told} == {**before[offset], **attempt}


def test_the_ledger_says_who_was_meant_and_adds_nothing(holding):
    before = state(holding).ledger

    result = close(holding, f"{TOPIC}/0@2")

    after = state(holding).ledger
    assert before is not None
    assert after is not None
    decisions = {"close_cases": {"asked": [f"{TOPIC}/0@2"], "records": 1}, "decided_by": BY}
    assert (after.seq, after.added, after.sources) == (before.seq + 1, {}, before.sources)
    assert after.decisions == result.decisions == decisions
    assert [(redo.rows, redo.within) for redo in after.redo] == [(1, {SOURCE: {0: (2, 3)}})]


def test_closing_twice_is_closing_once(holding):
    asked = named(holding, "bad_frame")
    close(holding, asked)
    before = state(holding)

    result = close(holding, asked, f"{TOPIC}/0@4")

    assert (result.status, result.counts["closed_by_hand"]) == (TableStatus.IDLE, 0)
    assert state(holding) == before


def test_what_a_person_closed_is_not_what_came_since(holding, caplog):
    monday = named(holding, "bad_frame")
    holding.ingest(ORDERS, [junk(order(7, 4))])
    before = state(holding)

    with pytest.raises(DecisionOutdatedError) as caught:
        close(holding, monday)

    friday = caught.value.standing.strip("`").removeprefix("orders=")
    assert state(holding) == before
    assert close(holding, friday).counts["closed_by_hand"] == 3
    (line,) = (each for each in caplog.records if each.msg == "records still cannot be decoded")
    assert line.close_cases == [f"orders={named(holding, 'unknown_schema')}"]


def test_a_record_that_is_no_case_is_refused_and_nothing_is_closed(holding):
    before = state(holding)

    with pytest.raises(CaseUnknownError) as caught:
        close(holding, named(holding, "bad_frame"), f"{TOPIC}/0@1")

    assert caught.value.asked == f"{TOPIC}/0@1"
    assert state(holding) == before


def test_a_closing_that_was_overtaken_changes_nothing(holding, monkeypatch):
    stale = state(holding)
    holding.ingest(ORDERS, [order(7, 5)])
    before = holding.bronze(ORDERS)
    monkeypatch.setattr(replay_job, "read_state", lambda uri, *, table: stale)

    with pytest.raises(SupersededError):
        close_codes(holding, "bad_frame")

    assert holding.bronze(ORDERS) == before


def test_a_table_that_stops_goes_on_when_every_case_is_closed(holding):
    close_codes(holding, "bad_frame")
    with pytest.raises(QuarantineOpenError):
        holding.merge(STOPS)
    close_codes(holding, "unknown_schema")

    result = holding.merge(STOPS)

    assert (result.open_cases, result.counts["undecodable"], result.counts["ignored"]) == (0, 0, 3)
    assert notes(holding.silver(ORDERS)) == {1: "one, newest", 2: "two, newest"}


def test_a_held_key_goes_on_when_its_case_is_closed(holding):
    assert holding.merge(HOLDS).counts["parked"] == 2
    assert notes(holding.silver(ORDERS)) == {1: "one", 2: "two"}

    close_codes(holding, "bad_frame")
    holding.merge(HOLDS)

    assert notes(holding.silver(ORDERS)) == {1: "one, newest", 2: "two"}
    assert holding.merge(HOLDS).status is TableStatus.IDLE


def test_a_record_without_a_readable_key_holds_a_table_until_its_case_is_closed(holding):
    holding.ingest(ORDERS, [replace(order(7, 9), key=b"junk")])
    with pytest.raises(UnknownKeyHeldError):
        holding.merge(HOLDS)

    close(holding, f"{TOPIC}/0@7")

    assert holding.merge(HOLDS).status is TableStatus.ADVANCED


def test_what_could_be_decoded_stays_closed_until_somebody_reopens_it(holding):
    close(holding, named(holding, "unknown_schema"), f"{TOPIC}/0@4")
    holding.merge(ORDERS)
    holding.registry.hidden = NEW.schemas

    left = replay(holding)
    again = replay(holding, reopen_cases=(f"orders={named(holding, 'unknown_schema', closed=True)}",))
    holding.merge(ORDERS)

    assert (left.counts, left.open_cases) == ({"waiting": 1, "closed": 0}, 1)
    assert (again.counts["reopened"], again.counts["closed"], again.open_cases) == (1, 1, 1)
    decoded = {row["offset"]: row for row in holding.bronze(ORDERS)}[5]
    assert (decoded["after"]["note"], decoded["decode_error"]) == ("unreadable", None)
    assert listed(holding) == [("bad_frame", False, 1), ("bad_frame", True, 1)]
    assert notes(holding.silver(ORDERS)) == {1: "one, newest", 2: "two, newest"}


def test_a_case_that_is_open_again_holds_what_comes_and_takes_nothing_back(holding):
    close_codes(holding, "bad_frame", "unknown_schema")
    holding.merge(HOLDS)
    replay(holding, reopen_cases=(f"orders={named(holding, 'bad_frame', closed=True)}",))
    holding.merge(HOLDS)
    assert notes(holding.silver(ORDERS)) == {1: "one, newest", 2: "two, newest"}
    holding.ingest(ORDERS, [order(7, 1, op="u", note="held"), order(8, 2, op="u", note="two, merged")])

    assert holding.merge(HOLDS).counts["parked"] == 1

    assert notes(holding.silver(ORDERS)) == {1: "one, newest", 2: "two, merged"}


def test_what_comes_behind_a_closing_is_a_case_of_its_own(holding):
    close_codes(holding, "bad_frame", "unknown_schema")

    holding.ingest(ORDERS, [junk(order(7, 4)), order(8, 4, note="four")])
    holding.sql("OPTIMIZE {t}", uri(holding))
    holding.merge(ORDERS)

    assert open_cases(uri(holding)) == 1
    found = cases(uri(holding))
    assert found is not None
    assert found["offset"].to_pylist() == [7]
    assert ("bad_frame", True, 2) in listed(holding)
    assert notes(holding.silver(ORDERS)) == {1: "one, newest", 2: "two, newest", 4: "four"}


def test_silver_made_anew_says_the_same_of_closed_cases(holding):
    close_codes(holding, "bad_frame", "unknown_schema")
    holding.merge(ORDERS)
    before = holding.silver(ORDERS)
    holding.forget_silver(ORDERS)

    assert holding.merge(ORDERS).open_cases == 0
    assert holding.silver(ORDERS) == before


def test_what_was_closed_is_told_though_the_replay_behind_it_fails(holding):
    holding.registry.away = True
    holding.registry.keys.clear()

    with pytest.raises(UnfinishedError) as caught:
        close(holding, f"{TOPIC}/0@2")

    assert isinstance(caught.value.__cause__, RegistryUnavailableError)
    assert caught.value.so_far.counts["closed_by_hand"] == 1
    assert open_cases(uri(holding)) == 2

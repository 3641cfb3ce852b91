"""The quarantine by an approved plan: what would decode now is shown before anything changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest
from chain import Chain  # type: ignore[import-not-found]
from orders import NEW, ORDERS, TOPIC, know, notes, order  # type: ignore[import-not-found]
from repairs import carry_out, error_of, make_plan, verify  # type: ignore[import-not-found]

from cases.encoding import KafkaRecord  # type: ignore[import-not-found]
from cdc_lakehouse.bronze import table_decoder
from cdc_lakehouse.bronze.closing import close_cases
from cdc_lakehouse.contract import TableResult, TableStatus
from cdc_lakehouse.errors import SupersededError
from cdc_lakehouse.lake.quarantine import listed_cases, name_of_cases, open_cases
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.registry.client import SchemaRegistry
from cdc_lakehouse.repair import quarantine
from cdc_lakehouse.repair.quarantine import Quarantine


def junk(record: KafkaRecord) -> KafkaRecord:
    return replace(record, value=b"junk")


@pytest.fixture(scope="module")
def template(engine, tmp_path_factory) -> Chain:
    chain = Chain(engine, root=tmp_path_factory.mktemp("quarantined").as_uri())
    know(chain)
    chain.ingest(ORDERS, [order(0, 1, note="one"), order(1, 2, note="two")])
    later = [
        junk(order(2, 1, op="u")),
        junk(order(3, 3)),
        order(4, 2, op="u", note="unreadable", priority=1, writer=NEW),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_decoder, "PERSISTS", timedelta())
        chain.ingest(ORDERS, later)
    know(chain, NEW)
    return chain


@pytest.fixture
def holding(template: Chain, tmp_path: Path) -> Chain:
    """Two junk records, and one whose schema the registry knows by now."""
    return template.copied_to(tmp_path)


def repair_of(chain: Chain) -> Quarantine:
    return Quarantine(cast(SchemaRegistry, chain.registry))


def planned(chain: Chain, do: str, cases: str = "") -> TableResult:
    plan: TableResult = make_plan(chain, ORDERS, repair_of(chain), {"do": do, "cases": cases})
    return plan


def named(chain: Chain, code: str) -> str:
    cases = [case for case in listed_cases(chain.lake.bronze("orders")) if case.code == code]
    return f"orders={name_of_cases(code, cases)}"


def version(chain: Chain) -> int:
    state = read_state(chain.lake.bronze("orders"), table="orders")
    assert state is not None
    return state.version


def test_a_replay_shows_what_would_decode_and_decodes_no_more_than_that(holding: Chain):
    before = version(holding)

    plan = planned(holding, "replay")
    unchanged = version(holding)
    done = carry_out(holding, ORDERS, repair_of(holding), plan)
    verified = verify(holding, ORDERS, repair_of(holding), plan)
    holding.merge(ORDERS)

    assert plan.counts == {
        "open_cases": 3,
        "decode_now": 1,
        "stay_undecodable": 2,
        "cases_closed": 0,
        "cases_reopened": 0,
    }
    assert (
        f"bad_frame: 2 record(s), first {TOPIC}/0@2 (key of 6 byte(s), value of 4 byte(s))"
        in (plan.plan["details"])
    )
    assert "bad_frame: 2 would not decode now" in plan.plan["details"]
    assert "junk" not in str(plan)
    assert (unchanged, done.status, done.counts) == (
        before,
        TableStatus.REPAIRED,
        {"waiting": 3, "closed": 1},
    )
    assert (verified.error, verified.counts) == (None, {"open_cases": 2})
    assert notes(holding.silver(ORDERS)) == {1: "one", 2: "unreadable"}


def test_a_replay_of_some_cases_leaves_the_others(holding: Chain):
    plan = planned(holding, "replay", named(holding, "bad_frame"))

    assert (plan.status, plan.counts["decode_now"], plan.counts["stay_undecodable"]) == (
        TableStatus.IDLE,
        0,
        2,
    )


def test_cases_are_closed_and_reopened_by_the_names_that_a_person_saw(holding: Chain):
    uri, name = holding.lake.bronze("orders"), named(holding, "bad_frame")
    plan = planned(holding, "close", name)
    unchanged = open_cases(uri)
    closed = carry_out(holding, ORDERS, repair_of(holding), plan)
    verified, after = verify(holding, ORDERS, repair_of(holding), plan), open_cases(uri)
    reopening = planned(holding, "reopen", f"{name}\norders={TOPIC}/0@3")
    reopened = carry_out(holding, ORDERS, repair_of(holding), reopening)

    assert (plan.counts["cases_closed"], unchanged, closed.counts["closed_by_hand"], after) == (2, 3, 2, 1)
    assert verified.error is None
    assert (reopening.counts["cases_reopened"], reopened.error, open_cases(uri)) == (2, None, 3)
    assert error_of(verify(holding, ORDERS, repair_of(holding), plan)).code == "REPAIR_NOT_VERIFIED"


def test_a_closing_that_was_killed_behind_its_commit_is_finished(
    holding: Chain, monkeypatch: pytest.MonkeyPatch
):
    plan = planned(holding, "close", named(holding, "bad_frame"))

    def close_and_die(*arguments: object) -> TableResult:
        close_cases(*arguments)  # type: ignore[arg-type]
        raise SupersededError(table="orders", seq=0, attempt="killed")

    with monkeypatch.context() as patch:
        patch.setattr(quarantine, "close_cases", close_and_die)
        killed = carry_out(holding, ORDERS, repair_of(holding), plan)
    committed = version(holding)
    finished = carry_out(holding, ORDERS, repair_of(holding), plan)

    assert error_of(killed).code == "SUPERSEDED"
    assert (finished.status, version(holding)) == (TableStatus.REPAIRED, committed)
    assert verify(holding, ORDERS, repair_of(holding), plan).error is None


def test_what_means_no_case_is_refused(holding: Chain):
    sentences = [
        error_of(planned(holding, do, cases)).sentence
        for do, cases in (
            ("burn", ""),
            ("close", ""),
            ("close", "customers=bad_frame:2records@5f1c09ae77d2"),
            ("close", "orders=bad_frame:9records@5f1c09ae77d2"),
        )
    ]

    assert "`do` is `replay`, `close`, `reopen`, not 'burn'" in sentences[0]
    assert "name them in `cases`" in sentences[1]
    assert "names no table of this run" in sentences[2]
    assert named(holding, "bad_frame") in sentences[3]

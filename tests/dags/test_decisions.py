"""A person's decisions: the form checks them, and they reach the ingest of their tables alone."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk.exceptions import ParamValidationError

from cdc_lakehouse.contract import Job
from cdc_lakehouse.errors import NotSupportedYetError, UnknownNameError
from cdc_lakehouse.orchestration.decisions import (
    CASE_DECISIONS,
    DECISIONS,
    NOTE,
    case_params,
    decided,
    decision_params,
    note_in,
)

PARAMS = decision_params()
CASES = case_params()
LOST = "orders=shop.public.orders/0:120-480"
ASKED = {
    "accept_gap": [LOST, "clicks=shop.public.clicks/3:7-9"],
    "source_epoch": {"orders": 2, "clicks": 3},
    "acknowledge_foreign": [],
    "fill_gaps": ["clicks"],
}


def asked_of(
    conf: dict[str, Any], *tables: str, job: Job = Job.BRONZE_INGEST, known: list[str] | None = None
) -> dict[str, Any]:
    """What the task of a group with these tables gets; none: those that it discovers."""
    return decided(conf, job=job, pipeline="shop", tables=tables or None, known=known)


def test_the_forms_ask_for_every_decision_and_explain_it():
    assert (tuple(PARAMS), tuple(CASES)) == ((*DECISIONS, NOTE), (*CASE_DECISIONS, NOTE))
    assert all(len(param.schema["description_md"]) > 50 for param in (*PARAMS.values(), *CASES.values()))


def test_an_empty_form_decides_nothing():
    empty = {name: param.resolve() for name, param in PARAMS.items()}

    assert empty.pop(NOTE) is None
    assert empty == {name: {} if name == "source_epoch" else [] for name in DECISIONS}
    assert not any(asked_of(empty, "orders").values())
    assert asked_of(empty, "orders", job=Job.VACUUM) == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("accept_gap", "orders"),
        ("acknowledge_foreign", [{"orders": "v3@step2"}]),
        ("fill_gaps", [7]),
        ("source_epoch", {"orders": "1"}),
        ("source_epoch", {"orders": 0}),
        ("source_epoch", {"orders": 2**63}),
    ],
)
def test_a_value_of_no_form_is_refused_when_it_is_made(name: str, value: Any):
    with pytest.raises(ParamValidationError):
        PARAMS[name].resolve(value=value)


def test_a_group_gets_what_is_about_its_own_tables():
    assert asked_of(ASKED, "orders", "customers") == {
        "accept_gap": (LOST,),
        "source_epoch": {"orders": 2},
        "acknowledge_foreign": (),
        "stop_reading": (),
        "fill_gaps": (),
    }


@pytest.mark.parametrize(
    "name", ["accept_gap", "acknowledge_foreign", "stop_reading", "accept_deletes", "fill_gaps"]
)
def test_the_form_takes_the_name_of_a_discovered_table_as_text(name: str):
    """Airflow offers a list to choose from where a parameter has examples, and else a line per value."""
    assert PARAMS[name].resolve(value=["clicks"]) == ["clicks"]
    assert "examples" not in PARAMS[name].schema


def test_what_is_copied_along_with_a_value_does_not_count():
    conf = {"accept_gap": ["", f" `{LOST}`", "\t"], "fill_gaps": ["", " "]}

    assert asked_of(conf, "orders", known=["orders"])["accept_gap"] == (LOST,)
    assert asked_of(conf, "orders", known=["orders"])["fill_gaps"] == ()


def test_a_group_that_discovers_its_tables_gets_all_and_says_itself_what_it_does_not_know():
    assert asked_of(ASKED)["accept_gap"] == (LOST, "clicks=shop.public.clicks/3:7-9")


@pytest.mark.parametrize(
    "conf", [{"accept_gap": ["ordrs=t/0:1-2"]}, {"source_epoch": {"ordrs": 1}}, {"fill_gaps": ["ordrs"]}]
)
def test_a_name_that_no_group_has_is_answered_with_those_that_there_are(conf: dict[str, Any]):
    with pytest.raises(UnknownNameError) as caught:
        asked_of(conf, "customers", known=["customers", "orders"])

    assert (caught.value.parameter, caught.value.asked) == (next(iter(conf)), "'ordrs'")
    assert caught.value.known == "orders, customers"


def test_the_merge_gets_what_it_decides_on_and_nothing_else():
    conf = {**ASKED, "accept_deletes": [" `orders=step1@v2:3000rows`", "clicks=step4@v9:1001rows"]}

    assert asked_of(conf, "orders", job=Job.SILVER_MERGE) == {"accept_deletes": ("orders=step1@v2:3000rows",)}
    assert "accept_deletes" not in asked_of(conf, "orders")


def test_maintenance_refuses_decisions_of_the_pipeline():
    with pytest.raises(NotSupportedYetError) as caught:
        asked_of(ASKED, "orders", job=Job.VACUUM)

    assert caught.value.feature == "a run with parameters (accept_gap, fill_gaps, source_epoch)"


def test_cases_are_closed_by_the_replay_and_the_tasks_beside_it_leave_them_alone():
    lines = ["orders=bad_frame:2records@5f1c09ae77d2", "orders=shop.public.orders/0@17"]
    asked = {"close_cases": [f" `{line}`" for line in lines], "reopen_cases": []}

    assert asked_of(asked, "orders", job=Job.QUARANTINE_REPLAY) == {
        "close_cases": tuple(lines),
        "reopen_cases": (),
    }
    assert asked_of(asked, "orders", job=Job.VACUUM) == {}
    with pytest.raises(NotSupportedYetError):
        asked_of(asked, "orders")
    with pytest.raises(UnknownNameError):
        asked_of({"close_cases": ["x=bad_frame"]}, job=Job.QUARANTINE_REPLAY, known=["orders"])


@pytest.mark.parametrize("value", [{"orders": ["bad_frame"]}, "orders=bad_frame", [17]])
def test_a_case_that_is_not_named_by_a_line_is_refused_by_the_form(value: Any):
    with pytest.raises(ParamValidationError):
        CASES["close_cases"].resolve(value=value)


def test_a_form_of_an_earlier_release_closes_nothing():
    """A run keeps its conf for ever, and may be cleared: a table alone names no case."""
    asked = {"close_cases": {"orders": ["bad_frame"]}}

    assert asked_of(asked, job=Job.QUARANTINE_REPLAY) == {"close_cases": ("orders",), "reopen_cases": ()}


def test_a_note_is_one_line_beside_the_decision_and_decides_nothing():
    conf = {"note": "Ticket 7:\n  retention was\ttoo short"}

    assert not any(asked_of(conf, "orders").values())
    assert asked_of(conf, "orders", job=Job.VACUUM) == {}
    assert note_in(conf) == "Ticket 7: retention was too short"
    assert [note_in(each) for each in (None, {}, {"note": None}, {"note": " "})] == [None] * 4
    assert len(note_in({"note": "x" * 900}) or "") == 500

"""A person's decisions: the form checks them, and they reach the ingest of their tables alone."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk.exceptions import ParamValidationError

from cdc_lakehouse.contract import Job
from cdc_lakehouse.errors import NotSupportedYetError
from cdc_lakehouse.orchestration.decisions import (
    CASE_DECISIONS,
    DECISIONS,
    case_params,
    decided,
    decision_params,
)

PARAMS = decision_params(["orders", "customers"], more=False)
CASES = case_params(["orders", "customers"], more=False)
ASKED = {
    "accept_gap": ["orders", "clicks"],
    "source_epoch": {"orders": 2, "clicks": 3},
    "acknowledge_foreign": [],
    "fill_gaps": ["clicks"],
}


def test_the_forms_ask_for_every_decision_and_explain_it():
    assert (tuple(PARAMS), tuple(CASES)) == (DECISIONS, CASE_DECISIONS)
    assert all(len(param.schema["description_md"]) > 50 for param in (*PARAMS.values(), *CASES.values()))


def test_an_empty_form_decides_nothing():
    empty = {name: param.resolve() for name, param in PARAMS.items()}

    assert empty == {"accept_gap": [], "source_epoch": {}, "acknowledge_foreign": [], "fill_gaps": []}
    assert not any(decided(empty, job=Job.BRONZE_INGEST, tables=["orders"]).values())
    assert decided(empty, job=Job.VACUUM, tables=["orders"]) == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("accept_gap", ["order"]),
        ("accept_gap", "orders"),
        ("acknowledge_foreign", ["orders", "orders"]),
        ("fill_gaps", ["order"]),
        ("source_epoch", {"order": 1}),
        ("source_epoch", {"orders": "1"}),
        ("source_epoch", {"orders": 0}),
    ],
)
def test_a_decision_about_nothing_is_refused_when_it_is_made(name: str, value: Any):
    with pytest.raises(ParamValidationError):
        PARAMS[name].resolve(value=value)


def test_a_group_gets_what_is_about_its_own_tables():
    assert decided(ASKED, job=Job.BRONZE_INGEST, tables=["orders", "customers"]) == {
        "accept_gap": ("orders",),
        "source_epoch": {"orders": 2},
        "acknowledge_foreign": (),
        "fill_gaps": (),
    }


def test_a_group_that_discovers_its_tables_gets_all_and_says_itself_what_it_does_not_know():
    param = decision_params(["orders"], more=True)["accept_gap"]

    assert param.resolve(value=["clicks"]) == ["clicks"]
    assert decided(ASKED, job=Job.BRONZE_INGEST, tables=None)["accept_gap"] == ("orders", "clicks")
    with pytest.raises(ParamValidationError):
        param.resolve(value=["No name"])


def test_the_merge_of_such_a_run_gets_none_of_it_and_maintenance_refuses_it():
    assert decided(ASKED, job=Job.SILVER_MERGE, tables=["orders"]) == {}

    with pytest.raises(NotSupportedYetError) as caught:
        decided(ASKED, job=Job.VACUUM, tables=["orders"])

    assert caught.value.feature == "a run with parameters (accept_gap, fill_gaps, source_epoch)"


def test_cases_are_closed_by_the_replay_and_the_tasks_beside_it_leave_them_alone():
    asked = {"close_cases": {"orders": ["bad_frame", "shop.public.orders/0@17"]}, "reopen_cases": {}}

    assert decided(asked, job=Job.QUARANTINE_REPLAY, tables=["orders"]) == {
        "close_cases": {"orders": ("bad_frame", "shop.public.orders/0@17")},
        "reopen_cases": {},
    }
    assert decided(asked, job=Job.VACUUM, tables=["orders"]) == {}
    with pytest.raises(NotSupportedYetError):
        decided(asked, job=Job.BRONZE_INGEST, tables=["orders"])


@pytest.mark.parametrize(
    "value", [{"order": ["bad_frame"]}, {"orders": []}, {"orders": "bad_frame"}, {"orders": ["17"], "x": []}]
)
def test_a_case_of_nothing_is_refused_when_it_is_named(value: Any):
    with pytest.raises(ParamValidationError):
        CASES["close_cases"].resolve(value=value)


@pytest.mark.parametrize("what", ["shop.public.orders/0", "0@17", "Bad Frame", ""])
def test_what_is_neither_a_code_nor_a_coordinate_is_refused(what: str):
    with pytest.raises(ParamValidationError):
        CASES["close_cases"].resolve(value={"orders": [what]})

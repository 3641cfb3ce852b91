"""What a decision is signed with: who made it, with which run, and why."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_lakehouse.application.signing import signed
from cdc_lakehouse.contract import AirflowContext, Job, JobRequest

RUN = AirflowContext("cdc_shop", "manual__1", "main.bronze_ingest", 2, triggered_by="ann", note="ticket 7")
BY_ANN = {"user": "ann", "run": "cdc_shop manual__1", "note": "ticket 7"}


def request(run: AirflowContext | None = RUN) -> JobRequest:
    return JobRequest(job=Job.BRONZE_INGEST, pipeline="shop", tables=(), airflow=run)


@pytest.mark.parametrize(
    "name", ["accept_gap", "source_epoch", "acknowledge_foreign", "stop_reading", "fill_gaps", "close_cases"]
)
def test_what_a_person_decided_says_who_with_which_run_and_why(name):
    assert signed({name: {}, "start": {}}, request()) == {name: {}, "start": {}, "decided_by": BY_ANN}


@pytest.mark.parametrize("decisions", [{}, {"start": {}}, {"recovered": "from rows"}, {"epochs_opened": []}])
def test_what_a_run_found_out_by_itself_is_signed_by_nobody(decisions: dict[str, Any]):
    assert signed(decisions, request()) == decisions


def test_a_decision_from_a_shell_is_signed_by_the_user_of_the_machine(monkeypatch):
    monkeypatch.setattr("getpass.getuser", lambda: "bob")

    assert signed({"accept_gap": {}}, request(None))["decided_by"] == {
        "user": "bob",
        "run": None,
        "note": None,
    }


def test_a_machine_that_knows_no_user_is_no_reason_to_fail(monkeypatch):
    def nobody() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", nobody)

    assert signed({"accept_gap": {}}, request(None))["decided_by"]["user"] is None

"""A rebuild and an interval by mouse and keyboard: what the forms show and send, what is reported."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cdc_lakehouse.contract import Job
from stack.backlogs import run_job  # type: ignore[import-not-found]
from stack.driver import DAG_ID, Run, rows  # type: ignore[import-not-found]

pytestmark = pytest.mark.timeout(3600)

REBUILD = "cdc_shop_rebuild"
SECONDS = 1200.0
"""What a part of a run may take on a busy machine."""


@pytest.fixture(scope="module")
def behind(chain, tmp_path_factory):
    """A silver that lacks a row which bronze has."""
    folder = tmp_path_factory.mktemp("pipelines")
    shutil.copy(Path(__file__).parents[2] / "include/pipelines/shop.yaml", folder)
    chain.stack.connector.wait_until_captured()
    chain.run()
    chain.change("INSERT INTO vouchers VALUES ('REBUILT', 1, NULL)")
    result, log = run_job(
        chain.stack, folder, Job.BRONZE_INGEST, pipeline="shop", options=["--tables", "vouchers"]
    )
    assert result.failed == (), log[-3000:]
    return chain


@dataclass(frozen=True)
class Rebuilt:
    """A rebuild from its form to its report."""

    required: list[str]
    """Fields that the form marks."""
    conf: dict[str, Any]
    question: str
    answer_status: int
    run: Run
    report: str


@pytest.fixture(scope="module")
def rebuilt(behind, pages) -> Rebuilt:
    pages.open_trigger_form(REBUILD)
    required = pages.required_fields()
    pages.fill(tables="vouchers", note="silver was edited by hand, ticket 7")
    pages.photograph("trigger-rebuild")
    triggered = pages.trigger()
    run_id = triggered["dag_run_id"]
    behind.airflow.wait_for_question(REBUILD, run_id, "approve", seconds=SECONDS)
    pages.open_approval(REBUILD, run_id)
    question = pages.read()
    pages.fill(confirm="vouchers")
    pages.photograph("approve-rebuild", bottom=pages.page.get_by_test_id("hitl-option-Approve"))
    status = pages.approve()
    run = behind.finish(REBUILD, run_id, seconds=SECONDS)
    pages.open_xcom(REBUILD, run_id, "outcome")
    pages.photograph("report-rebuild")
    return Rebuilt(required, triggered["conf"], question, status, run, pages.read())


def test_the_form_of_a_rebuild_asks_for_tables_and_sends_what_was_typed(rebuilt):
    assert rebuilt.required == ["tables"]
    assert rebuilt.conf == {
        "tables": ["vouchers"],
        "undo": None,
        "note": "silver was edited by hand, ticket 7",
    }


def test_the_approval_shows_the_plan_and_what_to_type(rebuilt):
    assert "rows added: 1" in rebuilt.question
    assert "To approve, type: vouchers. To reject, leave it empty." in rebuilt.question


def test_an_approval_by_mouse_is_carried_out_and_its_report_can_be_read(behind, rebuilt):
    assert (rebuilt.answer_status, rebuilt.run.state) == (200, "success")
    assert "All tasks succeeded" in rebuilt.report
    assert rows(behind.silver("vouchers"), ("code",), lambda row: row["code"] == "REBUILT") == [("REBUILT",)]


def test_an_interval_is_asked_for_by_the_form_and_a_list_can_be_emptied_again(chain, pages, rebuilt):
    until = datetime.now(UTC).replace(microsecond=0)
    times = {"from_time": (until - timedelta(hours=6)).isoformat(), "until_time": until.isoformat()}
    pages.open_trigger_form(DAG_ID)
    required, unchosen = pages.required_fields(), pages.shown("recompute")
    pages.fill(**times, tables="vouchers", accept_gap="a mistake")
    pages.fill(accept_gap="")
    pages.choose("recompute", "changed")
    pages.switch("dry_run")
    pages.photograph("trigger-interval", top=pages.page.get_by_role("button", name="Run Parameters"))
    triggered = pages.trigger()
    run = chain.finish(DAG_ID, triggered["dag_run_id"], seconds=SECONDS)
    asked = {name: value for name, value in triggered["conf"].items() if value}

    assert (required, unchosen) == ([], "all, if nothing is chosen")
    assert asked == {**times, "tables": ["vouchers"], "recompute": "changed", "dry_run": True}
    assert run.state == "success"

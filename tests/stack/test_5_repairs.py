"""A repair through Airflow's REST API: planned, shown to a person, approved, carried out once, verified."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from backlogs import run_job  # type: ignore[import-not-found]
from driver import Chain, rows  # type: ignore[import-not-found]

from cdc_lakehouse.contract import Job

REBUILD = "cdc_shop_rebuild"


def ask(chain: Chain) -> str:
    """Trigger a rebuild of `vouchers`, and return the run once it waits for a person."""
    run_id = trigger(chain)
    chain.airflow.wait_for_question(REBUILD, run_id, "approve", seconds=300)
    return run_id


def trigger(chain: Chain) -> str:
    run_id: str = chain.airflow.trigger(REBUILD, conf={"tables": ["vouchers"], "note": "ticket 7"})
    return run_id


def answer(chain: Chain, run_id: str, option: str, *, confirm: str) -> None:
    shown = chain.airflow.question(REBUILD, run_id, "approve")["params"]["plan"]["value"]
    chain.airflow.answer(REBUILD, run_id, "approve", option, {"plan": shown, "confirm": confirm})


@pytest.fixture(scope="module")
def behind(chain, tmp_path_factory):
    """A silver that lacks a row which bronze has."""
    folder = tmp_path_factory.mktemp("pipelines")
    shutil.copy(Path(__file__).parents[2] / "include/pipelines/shop.yaml", folder)
    chain.airflow.wait_for_dag(REBUILD)
    chain.run()
    chain.change("INSERT INTO vouchers VALUES ('REBUILT', 1, NULL)")
    result, log = run_job(
        chain.stack, folder, Job.BRONZE_INGEST, pipeline="shop", options=["--tables", "vouchers"]
    )
    assert result.failed == (), log[-3000:]
    return chain


@pytest.fixture(scope="module")
def rejected(behind):
    run_id = ask(behind)
    question = behind.airflow.question(REBUILD, run_id, "approve")
    answer(behind, run_id, "Reject", confirm="")
    return behind.finish(REBUILD, run_id), question


def test_the_form_shows_the_plan_and_a_rejected_one_changes_nothing(behind, rejected):
    run, question = rejected

    assert "rows added: 1" in question["body"]
    assert (run.state, run.states["act"]) == ("success", "skipped")
    report = behind.airflow.xcom(REBUILD, run.run_id, "outcome", key="report")
    assert report == "# nothing was changed: admin rejected the plan"
    assert rows(behind.silver("vouchers"), ("code",), lambda row: row["code"] == "REBUILT") == []


@pytest.fixture(scope="module")
def carried_out(behind, rejected):
    """Answered without the table's name first, then as the form asks."""
    run_id = ask(behind)
    answer(behind, run_id, "Approve", confirm="")
    refused = behind.finish(REBUILD, run_id)
    behind.airflow.clear(REBUILD, run_id, "approve")
    behind.airflow.wait_for_question(REBUILD, run_id, "approve", seconds=120)
    answer(behind, run_id, "Approve", confirm="vouchers")
    return refused, behind.finish(REBUILD, run_id)


def test_an_approved_plan_is_carried_out_and_one_without_the_tables_name_is_not(behind, carried_out):
    refused, done = carried_out

    assert (refused.state, refused.states["approve"], refused.states["act"]) == (
        "failed",
        "failed",
        "upstream_failed",
    )
    assert (done.state, set(done.states.values())) == ("success", {"success"})
    assert behind.differences() == []


def test_act_that_is_cleared_finds_the_plan_carried_out(behind, carried_out):
    run_id = carried_out[1].run_id
    behind.airflow.clear(REBUILD, run_id, "act")

    run = behind.finish(REBUILD, run_id)

    summary = behind.airflow.xcom(REBUILD, run_id, "act")
    assert (run.state, summary["tables"]) == ("success", {"vouchers": "idle"})
    assert behind.differences() == []


def test_a_plan_that_changes_nothing_asks_nobody_and_merges_go_on(behind, carried_out):
    run = behind.finish(REBUILD, trigger(behind))
    behind.change("INSERT INTO vouchers VALUES ('LATER', 1, NULL)")
    after = behind.run()

    assert (run.state, run.states["approve"], run.states["act"]) == ("success", "skipped", "skipped")
    assert (after.state, behind.differences()) == ("success", [])

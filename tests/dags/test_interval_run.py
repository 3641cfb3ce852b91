"""Which runs drain, and which make an interval complete: decided from what Airflow says of the run."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException
from fake_spark import call_of, idle, played, result, script, was_called  # type: ignore[import-not-found]
from test_operator import context  # type: ignore[import-not-found]

from cdc_lakehouse.config.models import Connections
from cdc_lakehouse.contract import Job, Recompute
from cdc_lakehouse.orchestration.interval_run import FormContext, Schedule, asked_of_run
from cdc_lakehouse.orchestration.operator import SparkJobOperator

QUARTERS = Schedule("*/15 * * * *", "UTC")


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 11, 3, hour, minute, tzinfo=UTC)


def run(**facts: Any) -> Any:
    usual = {
        "run_type": "manual",
        "run_id": "manual__1",
        "conf": {},
        "logical_date": at(14, 7),
        "data_interval_start": at(13, 45),
        "data_interval_end": at(14),
    }
    return SimpleNamespace(**{**usual, **facts})


NIGHT = {
    "from_time": "2026-11-03T01:00:00+00:00",
    "until_time": "2026-11-03T05:00:00+00:00",
}
HOURS = {"data_interval_start": at(1), "data_interval_end": at(5)}


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"run_type": "scheduled", "run_id": "scheduled__1", **HOURS},
        {"logical_date": None, "data_interval_start": None, "data_interval_end": None},
    ],
    ids=["manual, as the form opens", "scheduled", "manual without a date"],
)
def test_an_ordinary_run_drains(facts):
    assert asked_of_run(run(**facts), schedule=QUARTERS) == {}


def test_a_manual_run_with_an_interval_of_its_own_makes_it_complete():
    asked = asked_of_run(run(**HOURS), schedule=QUARTERS)

    assert asked == {**NIGHT, "recompute": Recompute.ALL, "also_drain": False}


def test_a_backfill_makes_its_interval_complete_and_drains_nothing():
    facts = {"run_type": "backfill", "run_id": "backfill__1", **HOURS}

    asked = asked_of_run(run(**facts), schedule=QUARTERS)

    assert asked == {**NIGHT, "recompute": Recompute.ALL, "also_drain": False}


@pytest.mark.parametrize("run_id", ["scheduled__1", "manual__1"])
def test_a_run_that_a_backfill_took_over_goes_on_draining_and_makes_its_interval_complete(run_id):
    facts = {"run_type": "backfill", "run_id": run_id, **HOURS}

    asked = asked_of_run(run(**facts), schedule=QUARTERS)

    assert asked == {**NIGHT, "recompute": Recompute.CHANGED, "also_drain": True}


def test_a_run_that_a_backfill_took_over_keeps_the_interval_of_its_form():
    conf = {"from_time": "2026-11-03", "until_time": "2026-11-04"}
    facts = {"run_type": "backfill", "run_id": "manual__1", "conf": conf, **HOURS}

    asked = asked_of_run(run(**facts), schedule=QUARTERS)

    assert asked == {**conf, "recompute": Recompute.ALL, "also_drain": False}


def test_the_form_says_the_interval_and_what_is_recomputed():
    conf = {"from_time": "2026-11-03", "until_time": "2026-11-04", "recompute": "changed", "dry_run": True}

    asked = asked_of_run(run(conf=conf), schedule=QUARTERS)

    assert asked == {**conf, "recompute": Recompute.CHANGED, "also_drain": False}


def test_a_recomputation_without_an_interval_is_left_to_the_job_which_refuses_it():
    asked = asked_of_run(run(conf={"recompute": "all"}), schedule=QUARTERS)

    assert asked == {"recompute": Recompute.ALL}


def test_half_an_interval_is_left_to_the_job_which_refuses_it():
    asked = asked_of_run(run(conf={"from_time": "2026-11-03"}), schedule=QUARTERS)

    assert (asked["from_time"], asked["until_time"]) == ("2026-11-03", None)


def task(job: Job = Job.BRONZE_INGEST) -> SparkJobOperator:
    return SparkJobOperator(
        task_id=job.value,
        job=job,
        pipeline="shop",
        tables=["orders", "customers"],
        connections=Connections(),
        form=FormContext(("orders", "customers", "ledger"), QUARTERS),
    )


def test_a_backfill_asks_its_job_for_the_interval_and_the_tables_of_the_form():
    script(bronze_ingest=played(result(Job.BRONZE_INGEST, idle("orders"))))
    facts = {"run_type": "backfill", "run_id": "backfill__1", "interval": (at(1), at(5))}

    task().execute(context(**facts, conf={"tables": [" `orders`"], "recompute": "changed"}))

    argv = call_of(Job.BRONZE_INGEST)["argv"]
    assert argv[argv.index("--tables") + 1] == "orders"
    assert argv[argv.index("--from-time") :] == [
        *("--from-time", NIGHT["from_time"], "--until-time", NIGHT["until_time"]),
        *("--recompute", "changed"),
    ]


def test_a_verify_behind_an_interval_compares_as_after_any_merge():
    facts = {"run_type": "backfill", "run_id": "backfill__1", "interval": (at(1), at(5))}

    asked = task(Job.VERIFY)._request(context(**facts))

    assert (asked.from_time, asked.dry_run) == (None, False)


def test_a_task_whose_tables_the_form_leaves_out_does_nothing_and_is_green():
    script(bronze_ingest=played(result(Job.BRONZE_INGEST, idle("orders"))))

    summary = task().execute(context(conf={"tables": ["ledger"]}))

    assert (summary["tables"], was_called(Job.BRONZE_INGEST)) == ({}, False)


@pytest.mark.parametrize("tables", [["ledger"], ["customers"]], ids=["of another group", "of the same"])
def test_a_decision_about_a_table_that_the_form_leaves_out_is_refused_and_not_ignored(tables):
    conf = {"tables": tables, "fill_gaps": ["orders"]}

    with pytest.raises(AirflowFailException, match="fill_gaps names 'orders'"):
        task().execute(context(conf=conf))


def test_a_table_that_nobody_knows_is_answered_with_those_that_there_are():
    with pytest.raises(AirflowFailException, match="UNKNOWN_NAME"):
        task().execute(context(conf={"tables": ["nope"]}))

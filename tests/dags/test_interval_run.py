"""Which runs drain, and which make an interval complete: decided from what Airflow says of the run."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException
from fake_spark import call_of, idle, played, result, script, was_called  # type: ignore[import-not-found]
from test_operator import Store, context  # type: ignore[import-not-found]

from cdc_lakehouse.config.models import Connections
from cdc_lakehouse.contract import Job
from cdc_lakehouse.orchestration.decisions import MAINTENANCE_JOBS
from cdc_lakehouse.orchestration.interval_run import (
    FormContext,
    Schedule,
    asked_of_run,
    has_specified_interval,
    judges_interval,
)
from cdc_lakehouse.orchestration.operator import SparkJobOperator
from cdc_lakehouse.run_modes import Recompute

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
        "clear_number": 0,
    }
    return SimpleNamespace(**{**usual, **facts})


def asked_of(dag_run: Any) -> dict[str, Any]:
    is_specified = judges_interval(dag_run, QUARTERS) and has_specified_interval(dag_run, QUARTERS)
    return asked_of_run(dag_run, is_specified=is_specified)


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
    assert asked_of(run(**facts)) == {}


def test_a_manual_run_with_an_interval_of_its_own_makes_it_complete():
    asked = asked_of(run(**HOURS))

    assert asked == {**NIGHT, "recompute": Recompute.ALL, "also_drain": False}


def test_a_backfill_makes_its_interval_complete_and_drains_nothing():
    facts = {"run_type": "backfill", "run_id": "backfill__1", **HOURS}

    asked = asked_of(run(**facts))

    assert asked == {**NIGHT, "recompute": Recompute.ALL, "also_drain": False}


@pytest.mark.parametrize("run_id", ["scheduled__1", "manual__1"])
def test_a_run_that_a_backfill_took_over_goes_on_draining_and_makes_its_interval_complete(run_id):
    facts = {"run_type": "backfill", "run_id": run_id, **HOURS}

    asked = asked_of(run(**facts))

    assert asked == {**NIGHT, "recompute": Recompute.CHANGED, "also_drain": True}


def test_a_run_that_a_backfill_took_over_keeps_the_interval_of_its_form():
    conf = {"from_time": "2026-11-03", "until_time": "2026-11-04"}
    facts = {"run_type": "backfill", "run_id": "manual__1", "conf": conf, **HOURS}

    asked = asked_of(run(**facts))

    assert asked == {**conf, "recompute": Recompute.ALL, "also_drain": False}


def test_the_form_says_the_interval_and_what_is_recomputed():
    conf = {"from_time": "2026-11-03", "until_time": "2026-11-04", "recompute": "changed", "dry_run": True}

    asked = asked_of(run(conf=conf))

    assert asked == {**conf, "recompute": Recompute.CHANGED, "also_drain": False}


def test_a_recomputation_without_an_interval_is_left_to_the_job_which_refuses_it():
    asked = asked_of(run(conf={"recompute": "all"}))

    assert asked == {"recompute": Recompute.ALL}


def test_half_an_interval_is_left_to_the_job_which_refuses_it():
    asked = asked_of(run(conf={"from_time": "2026-11-03"}))

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


@pytest.mark.parametrize("job", [Job.BRONZE_INGEST, Job.OPTIMIZE])
def test_a_table_that_nobody_knows_is_answered_with_those_that_there_are(job):
    with pytest.raises(AirflowFailException, match="UNKNOWN_NAME"):
        task(job).execute(context(conf={"tables": ["nope"]}))


HOURLY = FormContext(("orders", "customers", "ledger"), Schedule("0 * * * *", "UTC"))
INFERRED = {"run_type": "manual", "logical_date": at(14, 7), "interval": (at(13, 45), at(14))}
SPECIFIED = {"run_type": "manual", "logical_date": at(14, 7), "interval": (at(13), at(14))}


@pytest.mark.parametrize(
    ("facts", "from_time"),
    [(INFERRED, None), (SPECIFIED, "2026-11-03T13:00:00+00:00")],
    ids=["inferred", "specified"],
)
def test_a_cleared_run_keeps_its_kind_when_the_cron_changes(facts, from_time):
    store = Store()
    before, after = task(), task()
    after.form = HOURLY

    first = before._request(context(**facts, store=store))
    second = after._request(context(**facts, store=store, clear_number=1))

    assert (first.from_time, second.from_time) == (from_time, from_time)


def test_a_cleared_run_that_nothing_is_known_of_drains_if_any_cron_infers_its_interval():
    cleared = task()
    cleared.form = HOURLY

    first, again = (cleared._request(context(**INFERRED, clear_number=number)) for number in (0, 1))

    assert (first.from_time, again.from_time) == ("2026-11-03T13:45:00+00:00", None)


def test_a_cleared_run_over_another_day_keeps_its_interval_though_nothing_is_known_of_it():
    facts = {**INFERRED, "interval": (at(1), at(5))}

    assert task()._request(context(**facts, clear_number=1)).from_time == NIGHT["from_time"]


@pytest.mark.parametrize("job", MAINTENANCE_JOBS)
def test_maintenance_of_one_table_asks_its_job_for_that_table_alone(job):
    asked = task(job)._request(context(conf={"tables": [" `orders`"], "dry_run": True}))

    assert (asked.tables, asked.dry_run) == (("orders",), True)


@pytest.mark.parametrize("job", MAINTENANCE_JOBS)
def test_maintenance_of_every_night_is_for_all_tables_and_does_its_work(job):
    asked = task(job)._request(context(conf={"tables": [], "dry_run": False}))

    assert (asked.tables, asked.dry_run) == (("orders", "customers"), False)


def test_maintenance_has_no_interval():
    with pytest.raises(AirflowFailException, match=r"a run with parameters \(from_time\)"):
        task(Job.VACUUM).execute(context(conf={"from_time": "2026-11-03"}))


def test_a_case_of_a_table_that_the_form_leaves_out_is_refused_and_not_ignored():
    conf = {"tables": ["customers"], "close_cases": ["orders=bad_frame:2records@5f1c09ae77d2"]}

    with pytest.raises(AirflowFailException, match="close_cases names 'orders'"):
        task(Job.QUARANTINE_REPLAY).execute(context(conf=conf))

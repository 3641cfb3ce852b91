"""What people do beside the schedule: backfill, maintenance."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from driver import DAG_ID, GREEN, INGEST, MERGE, rows  # type: ignore[import-not-found]

from cdc_lakehouse.contract import Job

MAINTENANCE = "cdc_shop_maintenance"


@pytest.fixture(scope="module")
def refused(chain):
    run_id = chain.airflow.trigger(DAG_ID, conf={"from_time": "2026-02-01", "until_time": "2999-01-01"})
    return chain.finish(DAG_ID, run_id)


def test_an_interval_that_has_not_passed_is_refused_with_a_sentence(chain, refused):
    log = chain.airflow.log(DAG_ID, refused.run_id, INGEST, try_number=1)

    assert (refused.state, refused.states[INGEST]) == ("failed", "failed")
    assert "cannot be made complete: it ends in the future" in log


def test_the_page_of_the_run_leads_to_the_first_failed_task(chain, refused):
    note = chain.airflow.run_note(DAG_ID, refused.run_id)

    assert note.startswith(f"cdc_lakehouse: first failed task: [{INGEST}](http://")


def test_a_backfill_of_a_time_without_events_is_green_and_starts_no_spark(chain):
    day = datetime(2026, 2, 1, tzinfo=UTC)
    (run_id,) = chain.airflow.backfill(DAG_ID, from_date=day, to_date=day)
    run = chain.finish(DAG_ID, run_id)
    logs = [chain.airflow.log(DAG_ID, run_id, task, try_number=1) for task in (INGEST, MERGE)]

    assert (run.state, run.states) == ("success", GREEN)
    assert ["nothing to do" in log for log in logs] == [True, True]


@pytest.fixture(scope="module")
def interval(chain):
    """A run over the last hours, behind a change that no run has read."""
    chain.change("INSERT INTO vouchers VALUES ('UNREAD', 1, NULL)")
    now = datetime.now(UTC)
    run_id = chain.airflow.trigger(DAG_ID, interval=(now - timedelta(hours=6), now))
    return chain.finish(DAG_ID, run_id)


def test_a_run_with_an_interval_computes_its_keys_again_and_finds_them_right(chain, interval):
    log = chain.airflow.log(DAG_ID, interval.run_id, MERGE, try_number=1)
    report = chain.report(Job.SILVER_MERGE, "vouchers")

    assert (interval.state, interval.states) == ("success", GREEN)
    assert "vouchers idle keys_recomputed=" in log
    assert (report.rows, report.decisions["interval"]["recompute"]) == (0, "all")


def test_a_run_with_an_interval_drains_nothing_and_the_next_one_does(chain, interval):
    before = rows(chain.silver("vouchers"), ("code",), lambda row: row["code"] == "UNREAD")
    chain.run()

    assert (before, chain.differences()) == ([], [])


def test_maintenance_is_green(chain):
    run = chain.run(MAINTENANCE)

    assert (run.state, set(run.states.values())) == ("success", {"success"})


def test_maintenance_changes_no_row(chain):
    assert chain.differences() == []

"""What people do beside the schedule: backfill, maintenance."""

from __future__ import annotations

import pytest
from driver import DAG_ID, INGEST  # type: ignore[import-not-found]

MAINTENANCE = "cdc_shop_maintenance"


@pytest.fixture(scope="module")
def backfill(chain):
    (run_id,) = chain.airflow.backfill(
        DAG_ID, from_date="2026-02-01T00:00:00Z", to_date="2026-02-01T00:00:00Z"
    )
    return chain.finish(DAG_ID, run_id)


def test_a_backfill_fails_at_once(backfill):
    assert (backfill.state, backfill.states[INGEST]) == ("failed", "failed")


def test_a_backfill_says_that_it_is_not_supported_yet(chain, backfill):
    log = chain.airflow.log(DAG_ID, backfill.run_id, INGEST, try_number=1)

    assert "a backfill of an interval is not supported yet" in log


def test_the_page_of_the_run_leads_to_the_first_failed_task(chain, backfill):
    note = chain.airflow.run_note(DAG_ID, backfill.run_id)

    assert note.startswith(f"cdc_lakehouse: first failed task: [{INGEST}](http://")


def test_maintenance_is_green(chain):
    run = chain.run(MAINTENANCE)

    assert (run.state, set(run.states.values())) == ("success", {"success"})


def test_maintenance_changes_no_row(chain):
    assert chain.differences() == []

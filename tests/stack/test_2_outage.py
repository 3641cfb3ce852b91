"""A service is away: the registry while a run meets records, then PostgreSQL, with Airflow's database in it.

The records of one table have a schema that no run has met yet. The connector needs the registry too before it
can write such records: it goes away right after that.
"""

from __future__ import annotations

import pytest
from driver import DAG_ID, GREEN, INGEST, MERGE, RETRY  # type: ignore[import-not-found]

from cdc_lakehouse.contract import Job
from cdc_lakehouse.lake.snapshot import newest_snapshot
from local_stack.process import wait_until

WAITING = frozenset({"up_for_retry", "failed", "success"})


def version_of_bronze(chain, table: str = "orders") -> int:
    snapshot = newest_snapshot(chain.lake.bronze(table))
    assert snapshot is not None
    return snapshot.version


@pytest.fixture(scope="module")
def outage(chain):
    """The run, its tasks once `orders` was tried again, the ingest's log, versions before and after."""
    chain.change("UPDATE customers SET name = 'met before' WHERE id = 1")
    chain.run()
    chain.change(
        "ALTER TABLE orders ADD COLUMN channel text",
        "INSERT INTO orders VALUES (9001, 1, 'new', 10, now(), 'unseen', '2026-06-01', NULL, 'web')",
        "UPDATE customers SET name = 'away' WHERE id = 1",
    )
    before = {table: version_of_bronze(chain, table) for table in ("orders", "customers")}
    chain.stack.stop("registry")
    run_id = chain.airflow.trigger(DAG_ID)
    chain.airflow.wait_for_task(DAG_ID, run_id, RETRY, states=WAITING, seconds=240)
    tried = {task.task_id: task.state for task in chain.airflow.tasks(DAG_ID, run_id)}
    log = chain.airflow.log(DAG_ID, run_id, INGEST, try_number=1)
    after = {table: version_of_bronze(chain, table) for table in before}
    ingested = chain.report(Job.BRONZE_INGEST, "customers")
    chain.stack.start("registry")
    return run_id, tried, log, (before, after), ingested


@pytest.fixture(scope="module")
def cleared(chain, outage):
    chain.airflow.clear(DAG_ID, outage[0], INGEST)
    return chain.finish(DAG_ID, outage[0])


def test_an_outage_is_tried_again_and_holds_no_other_table(outage):
    assert outage[1][RETRY] == "up_for_retry"
    assert (outage[1][INGEST], outage[1][MERGE]) == ("success", "success")


def test_the_tables_that_it_does_not_concern_are_merged_meanwhile(chain, outage):
    rows = chain.silver("customers").to_pylist()

    assert [row["name"] for row in rows if row["id"] == 1] == ["away"]


def test_the_log_names_the_error_and_says_what_to_do(outage):
    assert "orders REGISTRY_UNAVAILABLE" in outage[2]
    assert "Nothing was written or quarantined." in outage[2]


def test_an_outage_writes_nothing(outage):
    before, after = outage[3]

    assert after["orders"] == before["orders"]


def test_a_table_whose_schemas_were_met_goes_on_from_the_archive(outage):
    (before, after), ingested = outage[3:]

    assert after["customers"] == before["customers"] + 1
    assert ingested.registry["source"] == "archive"
    assert "customers advanced appended=1 registry=archive" in outage[2]


def test_clearing_the_task_is_all_that_is_needed(cleared):
    assert (cleared.state, cleared.states) == ("success", GREEN)


def test_nothing_was_quarantined(chain, cleared):
    errors = chain.bronze("orders")["decode_error"]

    assert errors.null_count == len(errors)


def test_silver_equals_its_source_after_the_outage(chain, cleared):
    assert chain.differences() == []


@pytest.fixture(scope="module")
def run_after_the_database_was_away(chain, cleared):
    """PostgreSQL stays away until the scheduler has ended; then a row changes and a run is triggered."""
    log = chain.stack.site.layout.log("airflow-scheduler")
    chain.stack.stop("postgres")
    assert wait_until(lambda: "starting it again" in log.read_text(errors="replace"), 60)
    chain.stack.start("postgres")
    assert wait_until(lambda: all(chain.stack.health().values()), 120)
    chain.change("UPDATE customers SET name = 'after the outage' WHERE id = 1")
    return chain.run()


def test_airflow_goes_on_by_itself_after_its_database_was_away(run_after_the_database_was_away):
    assert (run_after_the_database_was_away.state, run_after_the_database_was_away.states) == (
        "success",
        GREEN,
    )


def test_no_change_is_lost_while_the_database_restarts(chain, run_after_the_database_was_away):
    assert chain.differences() == []

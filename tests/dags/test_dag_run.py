"""Whole runs in a real Airflow on a throw-away database."""

from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.models.asset import AssetEvent
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from airflow_home import CANARY, HOME, PROJECT  # type: ignore[import-not-found]
from fake_spark import OFFSETS_LOST, failed, idle, ingested, merged, played, result, script  # type: ignore[import-not-found]

from cdc_lakehouse.contract import Job
from recorded_results import recorded_table  # type: ignore[import-not-found]

INGESTED, MERGED = recorded_table(Job.BRONZE_INGEST), recorded_table(Job.SILVER_MERGE)
pytestmark = pytest.mark.usefixtures("database")


def run(dag_id: str) -> Any:
    return DagBag(dag_folder=str(PROJECT / "dags")).dags[dag_id].test()


def states(dag_run: Any) -> dict[str, str]:
    return {ti.task_id: str(ti.state) for ti in dag_run.get_task_instances()}


def events_of(dag_run: Any) -> dict[str, dict[str, Any]]:
    with create_session() as session:
        found = session.query(AssetEvent).filter_by(
            source_run_id=dag_run.run_id, source_dag_id=dag_run.dag_id
        )
        return {event.asset.name: event.extra for event in found}


@pytest.fixture(scope="module")
def partly_failed(database):
    tables = ("customers", "clicks")
    ingest = result(Job.BRONZE_INGEST, failed("orders", OFFSETS_LOST), *(ingested(t) for t in tables))
    merge = result(Job.SILVER_MERGE, idle("orders"), *(merged(t) for t in tables))
    script(bronze_ingest=played(ingest), silver_merge=played(merge))
    return run("cdc_shop")


def test_a_failed_table_makes_the_run_red_and_stops_no_other(partly_failed):
    assert str(partly_failed.state) == "failed"
    assert states(partly_failed) == {
        "main.bronze_ingest": "failed",
        "main.silver_merge": "success",
        "main.announce": "success",
        "heavy.bronze_ingest": "failed",
        "heavy.silver_merge": "success",
        "heavy.announce": "success",
        "outcome": "failed",
    }


def test_tables_that_advanced_are_announced_although_another_failed(partly_failed):
    events = events_of(partly_failed)
    assert set(events) == {
        f"shop.{layer}.{table}" for layer in ("bronze", "silver") for table in ("customers", "clicks")
    }
    assert events["shop.bronze.customers"]["ranges"] == {"shop.public.customers": {"0": [0, 10]}}
    assert {name: event["rows"] for name, event in events.items()} == dict.fromkeys(events, 10)
    assert events["shop.bronze.customers"]["seen_through"] == INGESTED.seen_through
    assert events["shop.silver.customers"]["valid_through"] == MERGED.valid_through


def test_outcome_links_to_the_first_failed_task(partly_failed):
    with create_session() as session:
        links = session.query(XComModel).filter_by(
            run_id=partly_failed.run_id, key="_link_FirstFailedTaskLink"
        )
        (value,) = [link.value for link in links]
    assert value.endswith("/tasks/main.bronze_ingest")


def test_nothing_that_airflow_wrote_holds_a_secret(partly_failed):
    files = [path for path in HOME.rglob("*") if path.is_file() and "call" not in path.name]
    assert [path for path in files if CANARY.encode() in path.read_bytes()] == []
    assert len(files) > 3


def test_a_failed_optimize_does_not_keep_vacuum_from_its_work_and_the_run_is_red():
    tables = [idle("orders"), idle("customers"), idle("clicks")]
    bad = result(Job.OPTIMIZE, failed("orders", OFFSETS_LOST), *tables[1:])
    script(
        quarantine_replay=played(result(Job.QUARANTINE_REPLAY, *tables)),
        optimize=played(bad),
        vacuum=played(result(Job.VACUUM, *tables)),
        clean_checkpoints=played(result(Job.CLEAN_CHECKPOINTS, *tables)),
    )
    dag_run = run("cdc_shop_maintenance")
    assert states(dag_run) == {
        "quarantine_replay": "success",
        "optimize": "failed",
        "vacuum": "success",
        "clean_checkpoints": "success",
        "outcome": "failed",
    }
    assert str(dag_run.state) == "failed"


def test_a_run_in_which_every_task_succeeds_is_green_and_idle_tables_announce_nothing():
    tables = [idle("orders"), idle("customers"), idle("clicks")]
    script(
        bronze_ingest=played(result(Job.BRONZE_INGEST, *tables)),
        silver_merge=played(result(Job.SILVER_MERGE, *tables)),
    )
    dag_run = run("cdc_shop")
    assert str(dag_run.state) == "success"
    assert events_of(dag_run) == {}

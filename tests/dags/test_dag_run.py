"""Whole runs in a real Airflow on a throw-away database."""

from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.listeners.listener import get_listener_manager
from airflow.models.asset import AssetEvent
from airflow.models.dagrun import DagRun
from airflow.models.pool import Pool
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from airflow_home import CANARY, HOME, PROJECT  # type: ignore[import-not-found]
from fake_spark import BROKER_AWAY, OFFSETS_LOST, failed, idle, ingested, merged, played, result, script  # type: ignore[import-not-found]

from cdc_lakehouse.contract import Job
from cdc_lakehouse.orchestration.links import RunNotes
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
        "main.retry_tables": "success",
        "main.announce": "success",
        "heavy.bronze_ingest": "failed",
        "heavy.silver_merge": "success",
        "heavy.retry_tables": "success",
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


@pytest.fixture(scope="module")
def one_left(database):
    """`orders` fails for the moment in both groups, and succeeds when it is tried again."""
    tables = ("customers", "clicks")
    ingest = result(Job.BRONZE_INGEST, failed("orders", BROKER_AWAY), *(ingested(t) for t in tables))
    merge = result(Job.SILVER_MERGE, idle("orders"), *(merged(t) for t in tables))
    again = {
        "bronze_ingest": played(result(Job.BRONZE_INGEST, ingested("orders"))),
        "silver_merge": played(result(Job.SILVER_MERGE, merged("orders"))),
    }
    by_task = {"main.retry_tables": again, "heavy.retry_tables": again}
    script(by_task, bronze_ingest=played(ingest), silver_merge=played(merge))
    return run("cdc_shop")


def test_a_table_that_failed_for_the_moment_holds_no_other_and_leaves_the_run_green(one_left):
    assert str(one_left.state) == "success"
    assert set(states(one_left).values()) == {"success"}


def test_the_others_are_merged_before_it_is_tried_again(one_left):
    ends = {ti.task_id: ti.end_date for ti in one_left.get_task_instances()}
    begins = {ti.task_id: ti.start_date for ti in one_left.get_task_instances()}
    assert ends["main.silver_merge"] <= begins["main.retry_tables"]


def test_a_table_that_was_tried_again_is_announced_like_the_others(one_left):
    events = events_of(one_left)
    assert set(events) == {
        f"shop.{layer}.{table}"
        for layer in ("bronze", "silver")
        for table in ("orders", "customers", "clicks")
    }
    assert events["shop.silver.orders"]["rows"] == 10


def test_outcome_links_to_the_first_failed_task(partly_failed):
    with create_session() as session:
        links = session.query(XComModel).filter_by(
            run_id=partly_failed.run_id, key="_link_FirstFailedTaskLink"
        )
        (value,) = [link.value for link in links]
    assert value.endswith("/tasks/main.bronze_ingest")


def note_of(dag_run: Any) -> str:
    with create_session() as session:
        return str(session.get_one(DagRun, dag_run.id).note or "")


def test_the_note_of_a_red_run_leads_to_the_first_failed_task(partly_failed):
    with create_session() as session:
        RunNotes().on_dag_run_failed(dag_run=session.get(DagRun, partly_failed.id), msg="task_failure")
    note = note_of(partly_failed)
    ends = {ti.task_id: ti.end_date for ti in partly_failed.get_task_instances()}
    first, then = sorted(("main.bronze_ingest", "heavy.bronze_ingest"), key=ends.__getitem__)
    assert note.startswith(f"cdc_lakehouse: first failed task: [{first}](")
    assert f"/tasks/{first}), then [{then}](" in note
    assert "outcome" not in note


def test_the_plugin_tells_airflow_who_writes_notes():
    listeners = get_listener_manager().pm.get_plugins()
    assert [type(each).__name__ for each in listeners] == ["RunNotes"]


def test_a_run_that_waits_for_a_pool_says_so_until_it_is_there(partly_failed):
    with create_session() as session:
        RunNotes().on_dag_run_running(dag_run=session.get(DagRun, partly_failed.id), msg="started")
    missing = note_of(partly_failed)
    with create_session() as session:
        Pool.create_or_update_pool("cdc_shop", 2, "", include_deferred=False, session=session)
    with create_session() as session:
        RunNotes().on_dag_run_running(dag_run=session.get(DagRun, partly_failed.id), msg="started")
    assert missing.startswith("cdc_lakehouse: the pool `cdc_shop` does not exist, so its tasks wait: ")
    assert note_of(partly_failed) == ""


def test_a_note_that_a_person_wrote_stays(partly_failed):
    with create_session() as session:
        session.get_one(DagRun, partly_failed.id).note = "asked the source team"
    with create_session() as session:
        RunNotes().on_dag_run_failed(dag_run=session.get(DagRun, partly_failed.id), msg="task_failure")
    assert note_of(partly_failed) == "asked the source team"


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

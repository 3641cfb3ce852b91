"""A look without a JVM before spark-submit: what it may decide, and what it leaves to the job."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from airflow_home import HERE, PROJECT  # type: ignore[import-not-found]
from fake_spark import idle, merged, played, result, script, was_called  # type: ignore[import-not-found]
from test_operator import context, operator  # type: ignore[import-not-found]

from cdc_lakehouse.contract import HAS_WORK, Job, JobRequest
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.reports import newest_results
from cdc_lakehouse.orchestration import idle_check

MERGED = result(Job.SILVER_MERGE, merged("orders"), idle("customers"))


@pytest.fixture
def lake(tmp_path, monkeypatch) -> Lake:
    """An empty one: nothing in bronze, so nothing to merge."""
    connection = {"conn_type": "generic", "extra": {"root": tmp_path.as_uri()}}
    monkeypatch.setenv("AIRFLOW_CONN_LAKEHOUSE_STORAGE", json.dumps(connection))
    monkeypatch.setenv("PYTHONPATH", f"{PROJECT / 'include'}:{HERE}")
    monkeypatch.setitem(idle_check.LOOKS, Job.SILVER_MERGE, "cdc_lakehouse.silver")
    script(silver_merge=played(MERGED))
    return Lake(root=tmp_path.as_uri(), pipeline="shop")


def test_a_group_without_work_is_done_without_spark(lake):
    summary = operator(Job.SILVER_MERGE).execute(context())

    assert summary["tables"] == {"orders": "idle", "customers": "idle"}
    assert not was_called(Job.SILVER_MERGE)


def test_an_idle_run_keeps_its_report_like_every_other(lake):
    summary = operator(Job.SILVER_MERGE).execute(context())

    (kept,) = newest_results(lake)
    folder = Path(lake.run(kept.attempt, Job.SILVER_MERGE).removeprefix("file://"))
    assert kept.attempt == summary["attempt"]
    assert {file.name for file in folder.iterdir()} == {"_summary.json", "orders.json", "customers.json"}


def test_a_look_that_fails_leaves_everything_to_the_job(lake, monkeypatch):
    monkeypatch.setitem(idle_check.LOOKS, Job.SILVER_MERGE, "no_such_module")

    assert operator(Job.SILVER_MERGE).execute(context())["tables"]["orders"] == "advanced"


def test_a_look_that_finds_an_error_leaves_it_to_the_job(lake):
    log = Path(lake.silver("orders").removeprefix("file://"), "_delta_log")
    bronze = Path(lake.bronze("orders").removeprefix("file://"), "_delta_log")
    for folder in (log, bronze):
        folder.mkdir(parents=True)
        (folder / f"{0:020d}.json").write_text("no action of Delta")

    assert operator(Job.SILVER_MERGE).execute(context())["tables"]["orders"] == "advanced"


def test_a_look_after_which_nothing_can_be_done_fails_the_task_without_spark(lake, monkeypatch):
    monkeypatch.setitem(idle_check.LOOKS, Job.BRONZE_INGEST, "lost_look")
    script(bronze_ingest=played(result(Job.BRONZE_INGEST, idle("orders"), idle("customers"))))

    with pytest.raises(AirflowFailException, match="1 of 2 tables failed: orders INTERVAL_INCOMPLETE"):
        operator(Job.BRONZE_INGEST).execute(context())

    assert not was_called(Job.BRONZE_INGEST)


def test_a_look_that_hangs_is_ended_and_the_job_starts(lake, monkeypatch):
    monkeypatch.setitem(idle_check.LOOKS, Job.SILVER_MERGE, "slow_look")
    monkeypatch.setattr(idle_check, "SECONDS", 0.5)

    assert operator(Job.SILVER_MERGE).execute(context())["tables"]["orders"] == "advanced"


def test_a_task_that_is_killed_while_it_looks_starts_no_job(lake, monkeypatch):
    monkeypatch.setitem(idle_check.LOOKS, Job.SILVER_MERGE, "slow_look")
    task = operator(Job.SILVER_MERGE)

    def kill_when_looking() -> None:
        while task._child is None:
            time.sleep(0.02)
        task.on_kill()

    killer = threading.Thread(target=kill_when_looking)
    killer.start()
    with pytest.raises(AirflowException, match=f"was killed by {signal.SIGTERM.name}"):
        task.execute(context())
    killer.join()
    assert not was_called(Job.SILVER_MERGE)


@pytest.mark.parametrize(
    "asked",
    [
        {"accept_gap": ("orders",)},
        {"stop_reading": ("orders=step7",)},
        {"fill_gaps": ("orders",)},
        {"accept_deletes": ("orders=step1@v2:3000rows",)},
        {"source_epoch": {"orders": 2}},
        {"dry_run": True},
    ],
)
def test_a_run_that_asks_for_more_goes_the_whole_way(lake, asked):
    request = JobRequest(job=Job.SILVER_MERGE, pipeline="shop", tables=("orders",), **asked)

    assert idle_check.look_command(request) is None


def test_a_look_is_asked_with_the_words_of_the_job_and_no_secret(lake):
    request = JobRequest(job=Job.SILVER_MERGE, pipeline="shop", tables=("orders", "customers"))

    assert idle_check.look_command(request) == [
        *(sys.executable, "-m", "cdc_lakehouse.silver"),
        *("--pipeline", "shop", "--tables", "orders,customers"),
    ]


def test_a_job_that_is_never_idle_has_no_look():
    assert idle_check.look_command(JobRequest(job=Job.VACUUM, pipeline="shop", tables=())) is None


def test_the_exit_code_of_a_look_with_work_is_no_code_of_a_job():
    assert HAS_WORK not in {0, 65, 70, 75, 78}

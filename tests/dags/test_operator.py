"""The operator against a real child process that stands in for spark-submit."""

import json
import stat
import threading
import time
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from airflow_home import CANARY, HOME  # type: ignore[import-not-found]
from fake_spark import (  # type: ignore[import-not-found]
    BROKER_AWAY,
    OFFSETS_LOST,
    call_of,
    failed,
    idle,
    ingested,
    played,
    result,
    script,
    was_called,
)

from cdc_lakehouse.config.models import Connections
from cdc_lakehouse.contract import ENV_RESULT, AirflowContext, ExitCode, Job
from cdc_lakehouse.orchestration.operator import SparkJobOperator

GOOD = result(Job.BRONZE_INGEST, ingested("orders"), idle("customers"))


class Store(dict[str, Any]):
    """Airflow's task state store: survives retries and clears."""

    def set(self, key: str, value: Any, *, retention: Any = None) -> None:
        self[key] = json.loads(json.dumps(value))


class TaskInstance(SimpleNamespace):
    def xcom_push(self, *, key: str, value: Any) -> None:
        self.pushed[key] = json.loads(json.dumps(value))


def context(
    *,
    run_type: str = "scheduled",
    run_id: str = "scheduled__2026",
    interval: tuple[datetime, datetime] | None = None,
    logical_date: datetime | None = None,
    conf: dict[str, Any] | None = None,
    store: Store | None = None,
    user: str | None = None,
    clear_number: int = 0,
) -> Any:
    ti = TaskInstance(
        dag_id="cdc_shop", run_id="scheduled__2026", task_id="main.bronze_ingest", try_number=2, pushed={}
    )
    start, end = interval or (None, None)
    dag_run = SimpleNamespace(
        run_type=run_type,
        run_id=run_id,
        logical_date=logical_date,
        data_interval_start=start,
        data_interval_end=end,
        conf=conf or {},
        triggering_user_name=user,
        clear_number=clear_number,
    )
    return {"ti": ti, "dag_run": dag_run, "task_state_store": Store() if store is None else store}


def operator(job: Job = Job.BRONZE_INGEST, connections: Connections | None = None) -> SparkJobOperator:
    return SparkJobOperator(
        task_id=job.value,
        job=job,
        pipeline="shop",
        tables=["orders", "customers"],
        connections=connections or Connections(),
    )


def test_a_good_run_returns_its_summary():
    script(bronze_ingest=played(GOOD))
    summary = operator().execute(context())
    assert summary["headline"] == "1 of 2 tables advanced"
    assert summary["advanced"]["orders"]["ranges"] == {"shop.public.orders": {"0": [0, 10]}}


def test_the_report_of_a_run_is_there_whether_it_is_green_or_red():
    asked = [context(), context()]
    script(bronze_ingest=played(GOOD))
    operator().execute(asked[0])
    script(bronze_ingest=played(result(Job.BRONZE_INGEST, failed("orders", OFFSETS_LOST), idle("customers"))))
    with pytest.raises(AirflowFailException):
        operator().execute(asked[1])

    first, second = (each["ti"].pushed["report"].splitlines() for each in asked)

    assert first[0] == "## 1 of 2 tables advanced"
    assert second[2].startswith("**orders** `OFFSETS_LOST`: ")


def test_the_job_is_asked_with_the_words_of_the_contract():
    script(bronze_ingest=played(GOOD))
    operator().execute(context())
    argv = call_of(Job.BRONZE_INGEST)["argv"]
    assert argv[argv.index("--master") + 1] == "local[2]"
    assert argv[argv.index("--pipeline") :] == [
        *("--pipeline", "shop", "--tables", "orders,customers"),
        *("--dag-id", "cdc_shop", "--dag-run-id", "scheduled__2026"),
        *("--task-id", "main.bronze_ingest", "--try", "2"),
    ]


def test_connections_travel_in_the_environment_as_json():
    script(bronze_ingest=played(GOOD))
    operator().execute(context())
    assert json.loads(call_of(Job.BRONZE_INGEST)["environ"]["CDC_LAKEHOUSE_CONN_KAFKA"]) == {
        "host": "broker:9092",
        "port": None,
        "login": "reader",
        "password": f"kafka-{CANARY}",
        "extra": {},
    }


def test_the_secret_of_a_spark_cluster_travels_in_the_environment():
    script(bronze_ingest=played(GOOD))
    operator().execute(context())
    assert call_of(Job.BRONZE_INGEST)["environ"]["CDC_LAKEHOUSE_SPARK_SECRET"] == f"spark-{CANARY}"


def test_an_ingest_is_told_where_its_source_is():
    script(bronze_ingest=played(GOOD))
    operator().execute(context())
    assert (
        json.loads(call_of(Job.BRONZE_INGEST)["environ"]["CDC_LAKEHOUSE_CONN_SOURCE"])["host"] == "database"
    )


@pytest.mark.usefixtures("database")
def test_an_ingest_does_without_a_source_that_airflow_does_not_know():
    script(bronze_ingest=played(GOOD))
    operator(connections=Connections(source="nowhere")).execute(context())
    assert "CDC_LAKEHOUSE_CONN_SOURCE" not in call_of(Job.BRONZE_INGEST)["environ"]


def test_no_secret_is_on_the_command_line_in_the_summary_or_in_the_log(caplog, capfd):
    script(bronze_ingest=played(GOOD))
    task = operator()
    summary = task.execute(context())
    call = call_of(Job.BRONZE_INGEST)
    seen = [call["cmdline"], *call["argv"], json.dumps(summary), caplog.text, *capfd.readouterr()]
    seen += [
        str(getattr(task, field)) for field in (*task.template_fields, "application_args", "conf", "env_vars")
    ]
    assert not [text for text in seen if CANARY in text]


def test_the_job_does_not_inherit_airflows_own_secrets(monkeypatch):
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", "fernet")
    monkeypatch.setenv("SPARK_CONF_DIR", "/conf")
    script(silver_merge=played(result(Job.SILVER_MERGE, idle("orders"), idle("customers"))))
    operator(Job.SILVER_MERGE).execute(context())
    environ = call_of(Job.SILVER_MERGE)["environ"]
    assert not [name for name in environ if "AIRFLOW" in name]
    assert environ["SPARK_CONF_DIR"] == "/conf"
    assert [name for name in environ if name.startswith("CDC_LAKEHOUSE_CONN_")] == [
        "CDC_LAKEHOUSE_CONN_STORAGE"
    ]


def test_the_result_lies_in_a_private_folder_that_is_removed():
    seen: list[int] = []
    script(bronze_ingest=played(GOOD, sleep=0.3))

    def look() -> None:
        while not was_called(Job.BRONZE_INGEST):
            time.sleep(0.02)
        folder = Path(call_of(Job.BRONZE_INGEST)["environ"][ENV_RESULT]).parent
        seen.append(stat.S_IMODE(folder.stat().st_mode))

    watcher = threading.Thread(target=look)
    watcher.start()
    operator().execute(context())
    watcher.join()
    assert seen == [0o700]
    assert not Path(call_of(Job.BRONZE_INGEST)["environ"][ENV_RESULT]).parent.exists()


@pytest.mark.parametrize(
    ("exit_code", "raised"),
    [
        (ExitCode.DATA, AirflowFailException),
        (ExitCode.CONFIG, AirflowFailException),
        (ExitCode.RETRY, AirflowException),
        (ExitCode.BUG, AirflowException),
        (1, AirflowException),
        (137, AirflowException),
        (ExitCode.DONE, AirflowException),
    ],
)
def test_an_application_without_a_result_ends_as_its_exit_code_says(exit_code, raised):
    script(bronze_ingest=played(exit=int(exit_code)))
    with pytest.raises(AirflowException) as caught:
        operator().execute(context())
    assert type(caught.value) is raised


def test_a_failed_table_is_the_first_line_and_the_log_is_not_in_the_exception():
    outcome = result(Job.BRONZE_INGEST, failed("orders", OFFSETS_LOST), ingested("customers"))
    script(
        bronze_ingest=played(outcome, lines=["Exception in thread main"] + [f"line {i}" for i in range(500)])
    )
    asked = context()
    with pytest.raises(AirflowFailException) as caught:
        operator().execute(asked)
    assert str(caught.value).splitlines()[0] == "1 of 2 tables failed: orders OFFSETS_LOST"
    assert "line 7" not in str(caught.value)
    assert asked["ti"].pushed["return_value"]["failed"] == {"orders": "OFFSETS_LOST"}


def test_what_an_earlier_try_moved_is_not_forgotten():
    store = Store()
    first = result(Job.BRONZE_INGEST, ingested("orders"), failed("customers", BROKER_AWAY), attempt="try-1")
    script(bronze_ingest=played(first))
    with pytest.raises(AirflowException, match="customers BROKER_UNAVAILABLE"):
        operator().execute(context(store=store))
    second = result(Job.BRONZE_INGEST, idle("orders"), ingested("customers"), attempt="try-2")
    script(bronze_ingest=played(second))
    summary = operator().execute(context(store=store))
    assert {table: way["attempts"] for table, way in summary["advanced"].items()} == {
        "orders": ["try-1"],
        "customers": ["try-2"],
    }


def test_lines_of_the_job_are_logged_at_their_level(capfd, caplog):
    line = {"log": "cdc_lakehouse", "level": "WARNING", "event": "batch late", "rows": 5}
    script(bronze_ingest=played(GOOD, lines=[json.dumps(line), "26/01/31 10:00:00 INFO Foo: hidden"]))
    operator().execute(context())
    text = caplog.text + "".join(capfd.readouterr())
    assert "batch late rows=5" in text
    assert "hidden" not in text


def test_the_report_is_a_group_of_the_log_before_its_last_line(capfd, caplog):
    script(bronze_ingest=played(GOOD))
    operator().execute(context())

    lines = (caplog.text + "".join(capfd.readouterr())).splitlines()
    start, end = (number_of(lines, text) for text in ("::group::Report", "::endgroup::"))
    assert "## 1 of 2 tables advanced" in lines[start + 1]
    assert number_of(lines[start:end], "| orders | advanced |")
    assert "orders advanced" in lines[end + 1]


def number_of(lines: list[str], text: str) -> int:
    return next(number for number, line in enumerate(lines) if text in line)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"conf": {"accept_gap": [], "x": 1}}, "a run with parameters (x) is not supported yet"),
    ],
)
def test_a_run_that_would_not_do_what_it_was_asked_for_fails_and_starts_nothing(asked, sentence):
    script(bronze_ingest=played(GOOD))
    with pytest.raises(AirflowFailException) as caught:
        operator().execute(context(**asked))
    assert str(caught.value).splitlines()[0] == "bronze_ingest was not started: NOT_SUPPORTED_YET"
    assert sentence in str(caught.value)
    assert not was_called(Job.BRONZE_INGEST)


def test_the_job_is_told_who_triggered_the_run_and_why():
    asked = operator()._request(context(conf={"note": "ticket\n7"}, user="ann"))

    assert asked.airflow == AirflowContext(
        "cdc_shop", "scheduled__2026", "main.bronze_ingest", 2, triggered_by="ann", note="ticket 7"
    )


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("role", ["spark", "kafka", "registry", "storage"])
def test_a_missing_connection_is_a_sentence_and_starts_nothing(role):
    script(bronze_ingest=played(GOOD))
    with pytest.raises(
        AirflowFailException, match="the connection nowhere is not usable: Airflow does not know it"
    ):
        operator(connections=Connections(**{role: "nowhere"})).execute(context())
    assert not was_called(Job.BRONZE_INGEST)


def test_cluster_mode_is_refused_because_it_hides_the_exit_code(monkeypatch):
    monkeypatch.setenv(
        "AIRFLOW_CONN_SPARK_CLUSTER",
        '{"conn_type": "spark", "host": "spark://m:7077", "extra": {"deploy-mode": "cluster"}}',
    )
    with pytest.raises(AirflowFailException, match="NOT_SUPPORTED_YET"):
        operator(connections=Connections(spark="spark_cluster")).execute(context())


def test_a_worker_without_spark_submit_is_a_sentence(monkeypatch):
    monkeypatch.setenv("PATH", str(HOME / "nothing"))
    with pytest.raises(AirflowFailException, match="the worker finds no spark-submit on its PATH"):
        operator().execute(context())


def test_on_kill_ends_the_application_and_the_task_may_be_tried_again():
    script(bronze_ingest=played(GOOD, sleep=60))
    task = operator()

    def kill_when_running() -> None:
        while not was_called(Job.BRONZE_INGEST):
            time.sleep(0.02)
        task.on_kill()

    killer = threading.Thread(target=kill_when_running)
    killer.start()
    with pytest.raises(
        AirflowException, match="bronze_ingest was killed by SIGTERM and left no result"
    ) as caught:
        task.execute(context())
    killer.join()
    assert type(caught.value) is AirflowException
    call = call_of(Job.BRONZE_INGEST)
    assert call["group"] == call["pid"]
    assert not psutil.pid_exists(call["pid"])


def test_on_kill_before_anything_runs_does_nothing():
    task = operator()
    task.on_kill()
    assert task._child is None

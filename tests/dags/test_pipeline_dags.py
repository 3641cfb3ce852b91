"""The DAGs as Airflow reads them from the folder, without a database."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import TriggerRule
from airflow.serialization.serialized_objects import DagSerialization
from airflow_home import CANARY, PROJECT  # type: ignore[import-not-found]

from cdc_lakehouse.contract import REPAIRS, Job
from cdc_lakehouse.errors import InvalidPipelineError
from cdc_lakehouse.orchestration.operator import SparkJobOperator
from cdc_lakehouse.orchestration.pipeline_dag import build_pipeline_dags
from cdc_lakehouse.orchestration.repair_forms import REPAIR_FORMS
from cdc_lakehouse.orchestration.runbook import error_classes

DAG_FILE = '''"""Airflow DAGs of the pipeline `{name}`."""

from cdc_lakehouse.orchestration.pipeline_dag import build_pipeline_dags

first, second = build_pipeline_dags("{name}")
'''
MAIN_TASKS = {
    "main.bronze_ingest",
    "main.silver_merge",
    "main.retry_tables",
    "main.announce",
    "heavy.bronze_ingest",
    "heavy.silver_merge",
    "heavy.retry_tables",
    "heavy.announce",
    "outcome",
}
IF_ASKED_FOR = {Job.VERIFY}
MAINTENANCE_TASKS = {"quarantine_replay", "optimize", "vacuum", "clean_checkpoints", "outcome"}


@pytest.fixture(scope="module")
def bag():
    return DagBag(dag_folder=str(PROJECT / "dags"))


@pytest.fixture(scope="module")
def dag(bag):
    return bag.dags["cdc_shop"]


@pytest.fixture(scope="module")
def maintenance(bag):
    return bag.dags["cdc_shop_maintenance"]


@pytest.fixture(scope="module")
def tasks(dag, maintenance):
    return [*dag.tasks, *maintenance.tasks]


@pytest.fixture(scope="module")
def spark_tasks(tasks):
    return [task for task in tasks if isinstance(task, SparkJobOperator)]


def test_every_file_of_the_folder_is_read_without_an_error(bag):
    assert bag.import_errors == {}
    assert set(bag.dags) >= {"cdc_shop", "cdc_shop_maintenance"}


@pytest.mark.parametrize(
    "file", sorted((PROJECT / "include" / "pipelines").glob("*.yaml")), ids=lambda f: f.stem
)
def test_every_shipped_pipeline_has_its_dag_file_and_its_dags(file):
    assert f'build_pipeline_dags("{file.stem}")' in (PROJECT / "dags" / f"cdc_{file.stem}.py").read_text()
    ids = [dag.dag_id for dag in build_pipeline_dags(file.stem, file.parent)]
    assert ids == [f"cdc_{file.stem}", f"cdc_{file.stem}_maintenance"]


def test_a_group_is_a_column_that_ends_in_outcome(dag):
    assert {task.task_id for task in dag.tasks} == MAIN_TASKS
    assert dag.get_task("main.bronze_ingest").downstream_task_ids == {"main.silver_merge", "outcome"}
    assert dag.get_task("main.silver_merge").downstream_task_ids == {
        "main.announce",
        "main.retry_tables",
        "outcome",
    }


def test_outcome_and_announce_are_the_only_leaves(dag):
    leaves = {task.task_id for task in dag.tasks if not task.downstream_task_ids}
    assert leaves == {"outcome", "main.announce", "heavy.announce"}


def test_groups_do_not_wait_for_each_other(dag):
    assert dag.get_task("heavy.silver_merge").upstream_task_ids == {"heavy.bronze_ingest"}


def test_maintenance_is_four_tasks_for_all_tables(maintenance):
    assert {task.task_id for task in maintenance.tasks} == MAINTENANCE_TASKS
    assert maintenance.get_task("vacuum").upstream_task_ids == {"optimize"}
    assert maintenance.get_task("optimize").upstream_task_ids == {"quarantine_replay"}
    assert maintenance.get_task("clean_checkpoints").upstream_task_ids == set()
    assert maintenance.get_task("vacuum").tables == ["orders", "customers", "clicks"]


def test_the_form_of_maintenance_asks_for_tables_and_for_a_dry_run(maintenance):
    assert list(maintenance.params) == ["tables", "dry_run", "close_cases", "reopen_cases", "note"]
    assert (maintenance.params["tables"], maintenance.params["dry_run"]) == ([], False)


def test_maintenance_forbids_backfills_and_the_pipeline_allows_them(dag, maintenance):
    allowed = DagSerialization.to_dict(maintenance)["dag"]["allowed_run_types"]

    assert allowed == [
        "asset_materialization",
        "asset_triggered",
        "manual",
        "operator_triggered",
        "scheduled",
    ]
    assert dag.allowed_run_types is None


def test_the_merge_runs_although_the_ingest_failed_but_not_when_it_was_skipped(dag):
    assert dag.get_task("main.bronze_ingest").trigger_rule == TriggerRule.ALL_SUCCESS
    assert dag.get_task("main.silver_merge").trigger_rule == TriggerRule.NONE_SKIPPED


def test_announce_and_outcome_run_in_any_case(dag):
    assert dag.get_task("main.announce").trigger_rule == TriggerRule.ALL_DONE
    assert dag.get_task("outcome").trigger_rule == TriggerRule.ALL_DONE


def test_one_run_at_a_time_and_no_catch_up(dag, maintenance):
    assert [(d.max_active_runs, d.catchup) for d in (dag, maintenance)] == [(1, False), (1, False)]


def test_runs_have_real_intervals_in_the_pipelines_zone(dag):
    timetable = DagSerialization.to_dict(dag)["dag"]["timetable"]["__var"]
    assert (timetable["expression"], timetable["timezone"]) == ("*/15 * * * *", "Europe/Vienna")
    assert type(dag.timetable).__name__ == "CronDataIntervalTimetable"
    assert dag.start_date.astimezone(UTC) == datetime(2025, 12, 31, 23, tzinfo=UTC)


def test_spark_tasks_share_the_pool_of_the_pipeline(spark_tasks):
    assert {task.pool for task in spark_tasks} == {"cdc_shop"}
    assert len(spark_tasks) == 10


def test_light_tasks_take_no_slot_from_spark(tasks):
    light = [task for task in tasks if not isinstance(task, SparkJobOperator)]
    assert {task.pool for task in light} == {"default_pool"}


def test_every_task_has_owner_retries_with_backoff_and_a_time_limit(tasks):
    for task in tasks:
        assert task.owner == "data-platform"
        assert task.retries == 3
        assert task.retry_delay == timedelta(seconds=20)
        assert task.retry_exponential_backoff == 2
        assert task.max_retry_delay == timedelta(seconds=300)
        assert task.execution_timeout in (timedelta(minutes=90), timedelta(minutes=5))


def test_the_time_limit_of_spark_tasks_is_the_pipelines(spark_tasks):
    assert {task.execution_timeout for task in spark_tasks} == {timedelta(minutes=90)}


def test_every_dag_and_task_carries_its_runbook(dag, maintenance, tasks):
    assert all(item.doc_md and len(item.doc_md) > 100 for item in (dag, maintenance, *tasks))
    assert "Ask **data-platform**" in dag.doc_md


def test_the_runbook_of_a_job_explains_every_exit_code_and_every_error(spark_tasks):
    for task in spark_tasks:
        assert all(f"| {code} |" in task.doc_md for code in (0, 65, 70, 75, 78))
        assert all(f"`{error.code}`" in task.doc_md for error in error_classes())


def test_every_job_of_the_contract_has_a_task(spark_tasks):
    assert {task.job for task in spark_tasks} == set(Job) - IF_ASKED_FOR - {*REPAIRS, Job.PREFLIGHT}


def test_a_task_submits_the_file_of_its_job(spark_tasks):
    assert {task.application for task in spark_tasks} == {
        str(PROJECT / "spark_jobs" / f"{job}.py")
        for job in set(Job) - IF_ASKED_FOR - {*REPAIRS, Job.PREFLIGHT}
    }


def test_every_table_is_an_asset_that_readers_can_find(dag, maintenance):
    bronze = {inlet.name for inlet in dag.get_task("main.silver_merge").inlets}
    every = {inlet.name for inlet in maintenance.get_task("quarantine_replay").inlets}
    assert bronze == {"shop.bronze.orders", "shop.bronze.customers"}
    assert every == {
        f"shop.{layer}.{t}" for layer in ("bronze", "silver") for t in ("orders", "customers", "clicks")
    }


def test_what_airflow_stores_and_renders_holds_no_secret(dag, spark_tasks):
    assert CANARY not in json.dumps(DagSerialization.to_dict(dag), default=str)
    for task in spark_tasks:
        assert task.template_fields == ("application", "pipeline", "tables")
        assert CANARY not in "".join(str(getattr(task, field)) for field in task.template_fields)
        assert task.conf is None
        assert task.env_vars is None


def test_only_the_ingest_is_given_kafka_and_the_registry(dag):
    assert dag.get_task("main.bronze_ingest").connection_ids == {
        "CDC_LAKEHOUSE_CONN_KAFKA": "lakehouse_kafka",
        "CDC_LAKEHOUSE_CONN_REGISTRY": "lakehouse_registry",
        "CDC_LAKEHOUSE_CONN_STORAGE": "lakehouse_storage",
    }
    assert dag.get_task("main.silver_merge").connection_ids == {
        "CDC_LAKEHOUSE_CONN_STORAGE": "lakehouse_storage"
    }


def pipelines_with_a_broken_one(folder: Path) -> Path:
    good = (Path(__file__).parent / "pipelines" / "shop.yaml").read_text()
    (folder / "shop.yaml").write_text(good)
    (folder / "broken.yaml").write_text(
        good.replace("name: shop", "name: broken").replace("[shop.public.orders]", "")
    )
    return folder


def test_a_broken_pipeline_is_a_sentence_and_hides_no_other(tmp_path, monkeypatch):
    monkeypatch.setenv("CDC_LAKEHOUSE_PIPELINES", str(pipelines_with_a_broken_one(tmp_path)))
    for name in ("shop", "broken"):
        (tmp_path / f"cdc_{name}.py").write_text(DAG_FILE.format(name=name))
    bag = DagBag(dag_folder=str(tmp_path), bundle_path=tmp_path)
    repairs = {f"cdc_shop_{job}" for job in (*REPAIR_FORMS, Job.PREFLIGHT)}
    assert set(bag.dags) == {"cdc_shop", "cdc_shop_maintenance", *repairs}
    (text,) = bag.import_errors.values()
    assert text.count('  File "') == 2
    assert "InvalidPipelineError: " in text
    assert "broken.yaml:16, table orders: " in text


def test_a_group_named_like_the_last_task_is_refused(tmp_path):
    good = (Path(__file__).parent / "pipelines" / "shop.yaml").read_text()
    (tmp_path / "shop.yaml").write_text(good.replace("group: heavy", "group: outcome"))
    with pytest.raises(InvalidPipelineError, match="outcome"):
        build_pipeline_dags("shop", tmp_path)


def test_dag_files_may_not_import_spark_or_parsers(tmp_path):
    bad = "import pyspark\nimport yaml\nfrom airflow.sdk import Variable\n"
    command = [
        str(Path(sys.executable).with_name("ruff")),
        "check",
        "--stdin-filename",
        "dags/cdc_bad.py",
        "-",
    ]
    checked = subprocess.run(
        [*command, "--select", "TID"], input=bad, capture_output=True, text=True, cwd=PROJECT
    )
    assert checked.stdout.count("TID251") == 3


def test_the_plugin_is_light_and_registers_our_link():
    code = "import sys; from cdc_lakehouse_plugin import CdcLakehousePlugin as p"
    code += "; print([link.name for link in p.operator_extra_links])"
    code += (
        "; print(sorted(m for m in sys.modules if m.startswith(('cdc_lakehouse.', 'pyspark', 'fastapi'))))"
    )
    path = f"{PROJECT / 'plugins'}:{PROJECT / 'include'}"
    out = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert out.stdout.splitlines()[0] == "['First failed task']", out.stderr
    loaded = [
        name for name in out.stdout.splitlines()[1].strip("[]").replace("'", "").split(", ") if "cdc" in name
    ]
    assert loaded == ["cdc_lakehouse.orchestration", "cdc_lakehouse.orchestration.links"]

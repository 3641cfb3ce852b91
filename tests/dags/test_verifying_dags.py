"""A pipeline that compares silver with its source: where the task stands, and how its job is run."""

import shutil
from pathlib import Path

import pytest
from airflow.sdk import TriggerRule
from airflow_home import HERE, HOME  # type: ignore[import-not-found]
from fake_spark import call_of, played, result, script  # type: ignore[import-not-found]
from test_operator import context, operator  # type: ignore[import-not-found]

from cdc_lakehouse.contract import Job
from cdc_lakehouse.orchestration.operator import SparkJobOperator
from cdc_lakehouse.orchestration.pipeline_dag import build_pipeline_dags
from recorded_results import recorded_table  # type: ignore[import-not-found]

EQUAL = recorded_table(Job.VERIFY, table="orders")


@pytest.fixture
def dag(tmp_path):
    text = (HERE / "pipelines" / "shop.yaml").read_text()
    verified = text.replace("  - name: orders\n", "  - name: orders\n    verify: true\n")
    (tmp_path / "shop.yaml").write_text(verified)
    return build_pipeline_dags("shop", tmp_path)[0]


def test_a_group_with_such_a_table_verifies_behind_its_merge(dag):
    verify = dag.get_task("main.verify")

    assert verify.upstream_task_ids == {"main.silver_merge"}
    assert verify.downstream_task_ids == {"outcome"}
    assert verify.trigger_rule == TriggerRule.NONE_SKIPPED
    assert verify.tables == ["orders"]


def test_a_group_without_one_has_no_such_task(dag):
    assert "heavy.verify" not in dag.task_ids


def test_outcome_is_red_when_silver_is_not_what_its_source_is(dag):
    assert "main.verify" in dag.get_task("outcome").watched


def test_the_job_is_given_the_source_and_how_far_kafka_goes(dag):
    assert dag.get_task("main.verify").connection_ids == {
        "CDC_LAKEHOUSE_CONN_KAFKA": "lakehouse_kafka",
        "CDC_LAKEHOUSE_CONN_SOURCE": "lakehouse_source",
        "CDC_LAKEHOUSE_CONN_STORAGE": "lakehouse_storage",
    }


def verifying() -> SparkJobOperator:
    """Its file is the stand-in itself: Python runs it, nothing submits it."""
    folder = HOME / "spark_jobs"
    folder.mkdir(exist_ok=True)
    task: SparkJobOperator = operator(Job.VERIFY)
    task.application = shutil.copy(HERE / "fake_spark_submit.py", folder / "verify.py")
    task.tables = ["orders"]
    return task


def test_no_spark_is_started_for_it():
    script(verify=played(result(Job.VERIFY, EQUAL)))
    verifying().execute(context())

    assert Path(call_of(Job.VERIFY)["argv"][0]).name == "verify.py"
    assert "--master" not in call_of(Job.VERIFY)["argv"]


def test_its_summary_tells_what_was_found_of_each_table():
    script(verify=played(result(Job.VERIFY, EQUAL)))
    summary = verifying().execute(context())

    assert summary["headline"] == "1 tables verified: 1 equal"
    assert summary["tables"] == {"orders": "equal"}

"""A pipeline that discovers tables: its tasks are those of its file, whatever tables a run finds."""

from __future__ import annotations

from typing import Any

import pytest
from fake_spark import call_of, failed, idle, ingested, played, result, script  # type: ignore[import-not-found]
from test_operator import context  # type: ignore[import-not-found]

from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.contract import ExitCode, Job, TableError
from cdc_lakehouse.orchestration.outcome import outcome_message
from cdc_lakehouse.orchestration.pipeline_dag import maintenance_dag, pipeline_dag

DOCUMENT: dict[str, Any] = {
    "version": 1,
    "name": "shop",
    "owner": "tests",
    "schedule": "0 * * * *",
    "start_date": "2026-01-01",
    "tables": [
        {"name": "orders", "topics": ["shop.public.orders"]},
        {"name": "clicks", "topics": ["shop.public.clicks"], "group": "heavy"},
    ],
    "discover": {"topics": ["shop.public.*"]},
}


def asked(job: Job) -> list[str]:
    """The arguments by which the tables are chosen."""
    argv = call_of(job)["argv"]
    return list(argv[argv.index("--pipeline") + 2 : argv.index("--dag-id")])


def run(dag: Any, task_id: str) -> dict[str, Any]:
    return dict(dag.get_task(task_id).execute(context()))


@pytest.fixture
def pipeline() -> Pipeline:
    return Pipeline.model_validate(DOCUMENT)


def test_task_ids_do_not_depend_on_what_is_discovered(pipeline):
    listed = Pipeline.model_validate({**DOCUMENT, "discover": None})

    assert pipeline_dag(pipeline).task_ids == pipeline_dag(listed).task_ids


def test_a_group_of_discovered_tables_alone_has_its_tasks(pipeline):
    document = {**DOCUMENT, "tables": [], "discover": {"topics": ["shop.public.*"], "group": "found"}}

    assert {"found.bronze_ingest", "found.silver_merge"} < set(
        pipeline_dag(Pipeline.model_validate(document)).task_ids
    )


def test_the_group_that_discovers_is_asked_for_as_a_whole(pipeline):
    script(bronze_ingest=played(result(Job.BRONZE_INGEST, idle("orders"), ingested("returns"))))

    summary = run(pipeline_dag(pipeline), "main.bronze_ingest")

    assert asked(Job.BRONZE_INGEST) == ["--group", "main"]
    assert summary["tables"] == {"orders": "idle", "returns": "advanced"}


def test_other_groups_are_asked_for_by_name(pipeline):
    script(bronze_ingest=played(result(Job.BRONZE_INGEST, idle("clicks"))))

    run(pipeline_dag(pipeline), "heavy.bronze_ingest")

    assert asked(Job.BRONZE_INGEST) == ["--tables", "clicks"]


def test_maintenance_is_for_everything_that_there_is(pipeline):
    script(vacuum=played(result(Job.VACUUM, idle("orders"), idle("clicks"), idle("returns"))))

    run(maintenance_dag(pipeline), "vacuum")

    assert asked(Job.VACUUM) == []


def test_the_outcome_counts_discovered_tables():
    error = TableError("UNDISCOVERABLE_TOPIC", ExitCode.CONFIG, "", "")
    summary = {"tables": dict.fromkeys("abcd", "idle"), "failed": {failed("d", error).table: error.code}}

    message = outcome_message(
        failed={"main.bronze_ingest": "failed"}, summaries={"main.bronze_ingest": summary}, table_count=2
    )

    assert message.splitlines()[0] == "1 of 4 tables failed: d UNDISCOVERABLE_TOPIC"

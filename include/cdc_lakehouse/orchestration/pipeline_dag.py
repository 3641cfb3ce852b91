"""The Airflow DAGs of one pipeline, built from its YAML file.

    cdc_<pipeline>              <group>.bronze_ingest >> <group>.silver_merge >> outcome
                                                         <group>.silver_merge >> <group>.announce
                                                         <group>.silver_merge >> <group>.retry_tables
                                                         <group>.silver_merge >> <group>.verify >> outcome
    cdc_<pipeline>_<repair>     one for each kind of repair, and `preflight` (`orchestration.repair_dag`)
    cdc_<pipeline>_maintenance  quarantine_replay >> optimize >> vacuum >> outcome
                                clean_checkpoints >> outcome

`outcome` is downstream of every task that runs a job. Jobs run in the pool `cdc_<pipeline>`; `announce` and
`outcome` only talk to Airflow and need no slot of it. `verify` is there where a table of the group asks for
it.
`NONE_SKIPPED` means: whatever became of the task above, unless nobody wanted it to run.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, CronDataIntervalTimetable, Param, TaskGroup, TriggerRule
from airflow.sdk.api.datamodels._generated import DagRunType

from cdc_lakehouse.config.loader import find_pipeline
from cdc_lakehouse.config.models import Pipeline, Table
from cdc_lakehouse.config.values import duration
from cdc_lakehouse.contract import Job
from cdc_lakehouse.errors import InvalidPipelineError
from cdc_lakehouse.orchestration import runbook
from cdc_lakehouse.orchestration.advances import LAYER
from cdc_lakehouse.orchestration.assets import assets
from cdc_lakehouse.orchestration.decisions import case_params, decision_params
from cdc_lakehouse.orchestration.interval_run import FormContext, Schedule, maintenance_params, run_params
from cdc_lakehouse.orchestration.operator import SparkJobOperator
from cdc_lakehouse.orchestration.outcome import AnnounceOperator, OutcomeOperator
from cdc_lakehouse.orchestration.repair_dag import repair_dags
from cdc_lakehouse.orchestration.retry_tables import RetryTablesOperator

OUTCOME = "outcome"
RETRY_TABLES = "retry_tables"
_NO_BACKFILL = tuple(each for each in DagRunType if each is not DagRunType.BACKFILL)
"""Maintenance is about the tables as they are now: a run for an interval of the past has nothing to do."""
_LIGHT_TASK: dict[str, Any] = {
    "pool": "default_pool",
    "execution_timeout": timedelta(minutes=5),
    "trigger_rule": TriggerRule.ALL_DONE,
}


def build_pipeline_dags(name: str, folder: Path | None = None) -> tuple[DAG, DAG]:
    """The pipeline's DAG and its maintenance DAG; those of repairs register themselves.

    Airflow shows the sentence of an unusable file.
    """
    try:
        pipeline = find_pipeline(name, folder)
    except InvalidPipelineError as error:
        error.add_note(error.advice)
        raise error.with_traceback(None) from None
    repair_dags(pipeline)
    return pipeline_dag(pipeline), maintenance_dag(pipeline)


def pool_name(pipeline: Pipeline) -> str:
    """The pool must exist; its slots are the number of Spark applications at a time."""
    return f"cdc_{pipeline.name}"


def _form_context(pipeline: Pipeline) -> FormContext:
    names = None if pipeline.discover is not None else tuple(table.name for table in pipeline.tables)
    return FormContext(names, Schedule(pipeline.schedule, pipeline.timezone))


def pipeline_dag(pipeline: Pipeline) -> DAG:
    """`cdc_<pipeline>`: one column of tasks per group."""
    text = runbook.dag_text(pipeline)
    with _dag(
        pipeline, suffix="", cron=pipeline.schedule, text=text, params={**run_params(), **decision_params()}
    ) as dag:
        watched = [
            task
            for group, tables in pipeline.groups.items()
            for task in _group_column(pipeline, group, tables)
        ]
        _outcome(pipeline, watched)
    return dag


def maintenance_dag(pipeline: Pipeline) -> DAG:
    """`cdc_<pipeline>_maintenance`: each job for all tables, cleared alone."""
    cron, text = pipeline.maintenance.schedule, runbook.maintenance_text(pipeline)
    params = {**maintenance_params(), **case_params()}
    with _dag(
        pipeline, suffix="_maintenance", cron=cron, text=text, params=params, run_types=_NO_BACKFILL
    ) as dag:
        inlets = assets(pipeline.name, layers=["bronze", "silver"], tables=pipeline.tables)
        tables, by_name = pipeline.tables, pipeline.discover is None
        trigger_rule = TriggerRule.NONE_SKIPPED
        replay = _job(pipeline, Job.QUARANTINE_REPLAY, tables, by_name=by_name, inlets=inlets)
        optimize = _job(pipeline, Job.OPTIMIZE, tables, by_name=by_name, trigger_rule=trigger_rule)
        vacuum = _job(pipeline, Job.VACUUM, tables, by_name=by_name, trigger_rule=trigger_rule)
        clean_checkpoints = _job(pipeline, Job.CLEAN_CHECKPOINTS, tables, by_name=by_name)
        replay >> optimize >> vacuum
        _outcome(pipeline, [replay, optimize, vacuum, clean_checkpoints])
    return dag


def _dag(
    pipeline: Pipeline,
    *,
    suffix: str,
    cron: str,
    text: str,
    params: dict[str, Param],
    run_types: tuple[DagRunType, ...] | None = None,
) -> DAG:
    retry = pipeline.retry
    return DAG(
        dag_id=f"cdc_{pipeline.name}{suffix}",
        schedule=CronDataIntervalTimetable(cron, timezone=pipeline.timezone),
        start_date=pipeline.start_moment,
        catchup=False,
        max_active_runs=1,
        doc_md=text,
        params=params,
        allowed_run_types=run_types,
        tags={"cdc", pipeline.name},
        default_args={
            "owner": pipeline.owner,
            "pool": pool_name(pipeline),
            "retries": retry.attempts,
            "retry_delay": timedelta(seconds=retry.delay_seconds),
            "retry_exponential_backoff": 2,
            "max_retry_delay": timedelta(seconds=retry.max_delay_seconds),
            "execution_timeout": duration(pipeline.execution_timeout),
        },
    )


def _group_column(pipeline: Pipeline, group: str, tables: tuple[Table, ...]) -> list[SparkJobOperator]:
    discovers = pipeline.discover is not None and pipeline.discover.group == group
    asked: dict[str, Any] = {"group": group if discovers else None, "by_name": not discovers}
    with TaskGroup(group_id=group):
        ingest = _job(pipeline, Job.BRONZE_INGEST, tables, **asked, leaves_rest=True)
        merge = _job(
            pipeline,
            Job.SILVER_MERGE,
            tables,
            **asked,
            trigger_rule=TriggerRule.NONE_SKIPPED,
            inlets=assets(pipeline.name, layers=["bronze"], tables=tables),
        )
        announce = AnnounceOperator(
            task_id="announce",
            pipeline=pipeline.name,
            alias=f"{pipeline.name}.{group}",
            layers={LAYER[task.job]: task.task_id for task in (ingest, merge)},
            doc_md=runbook.announce_text(),
            **_LIGHT_TASK,
        )
        retry = RetryTablesOperator(
            task_id=RETRY_TABLES,
            pipeline=pipeline.name,
            connections=pipeline.connections,
            ingest=ingest.task_id,
            alias=f"{pipeline.name}.{group}",
            group=asked["group"],
            form=_form_context(pipeline),
            trigger_rule=TriggerRule.NONE_SKIPPED,
            doc_md=runbook.retry_text(),
        )
        ingest >> merge >> [announce, retry]
        if not pipeline.verifies(group):
            return [ingest, merge, retry]
        verified = tuple(table for table in tables if table.verify)
        verify = _job(pipeline, Job.VERIFY, verified, **asked, trigger_rule=TriggerRule.NONE_SKIPPED)
        merge >> verify
    return [ingest, merge, retry, verify]


def _job(pipeline: Pipeline, job: Job, tables: tuple[Table, ...], **options: Any) -> SparkJobOperator:
    names = tuple(table.name for table in tables)
    return SparkJobOperator(
        task_id=job.value,
        job=job,
        pipeline=pipeline.name,
        tables=names,
        connections=pipeline.connections,
        form=_form_context(pipeline),
        doc_md=runbook.job_text(job, tables=names, more=not options.get("by_name", True)),
        **options,
    )


def _outcome(pipeline: Pipeline, watched: list[SparkJobOperator]) -> None:
    watched >> OutcomeOperator(
        task_id=OUTCOME,
        watched=[task.task_id for task in watched],
        table_count=len(pipeline.tables),
        doc_md=runbook.outcome_text(),
        **_LIGHT_TASK,
    )

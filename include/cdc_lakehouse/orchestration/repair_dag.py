"""The DAGs that repair tables of one pipeline, one for each kind of repair.

    cdc_<pipeline>_<repair>     plan >> approve >> act >> verify >> outcome
    cdc_<pipeline>_preflight    preflight: looks at everything, changes nothing

A run waits in `approve` for a person, for a day at most, and needs no worker meanwhile. So several runs of
one DAG are active at a time: which of them may still act is decided by the tables' records, not by Airflow.
Jobs of repairs do not take slots of the pipeline's pool: they hold up no run of its schedule.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param, TriggerRule

from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.config.values import duration
from cdc_lakehouse.contract import Job
from cdc_lakehouse.orchestration import runbook
from cdc_lakehouse.orchestration.approval import PlanApprovalOperator
from cdc_lakehouse.orchestration.operator import SparkJobOperator
from cdc_lakehouse.orchestration.repair_forms import REPAIR_FORMS, RepairForm, repair_params
from cdc_lakehouse.orchestration.repair_operator import RepairOutcomeOperator, RepairStepOperator
from cdc_lakehouse.run_modes import RepairStep

_POOL = "default_pool"


def repair_dags(pipeline: Pipeline) -> tuple[DAG, ...]:
    """Return the DAGs; Airflow registers each by itself when its file is read."""
    repairs = (_repair_dag(pipeline, job, form) for job, form in REPAIR_FORMS.items())
    return (*repairs, _preflight_dag(pipeline))


def _preflight_dag(pipeline: Pipeline) -> DAG:
    """Return `cdc_<pipeline>_preflight`, which only looks."""
    text = runbook.job_text(Job.PREFLIGHT, tables=())
    with _dag_without_schedule(pipeline, Job.PREFLIGHT, text=text, params={}) as dag:
        SparkJobOperator(
            task_id=Job.PREFLIGHT.value,
            job=Job.PREFLIGHT,
            pipeline=pipeline.name,
            tables=(),
            connections=pipeline.connections,
            by_name=False,
            doc_md=text,
        )
    return dag


def _dag_without_schedule(pipeline: Pipeline, job: Job, *, text: str, params: dict[str, Param]) -> DAG:
    retry = pipeline.retry
    return DAG(
        dag_id=f"cdc_{pipeline.name}_{job}",
        schedule=None,
        start_date=pipeline.start_moment,
        catchup=False,
        # It has no schedule: paused, it would only keep the run of a person waiting.
        is_paused_upon_creation=False,
        doc_md=text,
        params=params,
        tags={"cdc", "repair", pipeline.name},
        default_args={
            "owner": pipeline.owner,
            "pool": _POOL,
            "retries": retry.attempts,
            "retry_delay": timedelta(seconds=retry.delay_seconds),
            "retry_exponential_backoff": 2,
            "max_retry_delay": timedelta(seconds=retry.max_delay_seconds),
            "execution_timeout": duration(pipeline.execution_timeout),
        },
    )


def _repair_dag(pipeline: Pipeline, job: Job, form: RepairForm) -> DAG:
    text = runbook.repair_text(job, form.about)
    with _dag_without_schedule(pipeline, job, text=text, params=repair_params(form)) as dag:
        plan, act, verify = (_step(pipeline, job, form, step) for step in RepairStep)
        approve = PlanApprovalOperator(
            task_id="approve",
            repair=job,
            four_eyes=pipeline.four_eyes,
            retries=0,
            execution_timeout=None,
            doc_md=runbook.approve_text(),
        )
        outcome = RepairOutcomeOperator(
            task_id="outcome",
            watched=[each.task_id for each in (plan, approve, act, verify)],
            table_count=0,
            execution_timeout=timedelta(minutes=5),
            trigger_rule=TriggerRule.ALL_DONE,
            doc_md=runbook.outcome_text(),
        )
        plan >> approve >> act >> verify >> outcome
    return dag


def _step(pipeline: Pipeline, job: Job, form: RepairForm, step: RepairStep) -> RepairStepOperator:
    options: dict[str, Any] = {}
    if step is not RepairStep.VERIFY:
        # Two steps of one kind at a time would share the machine and gain nothing.
        options["max_active_tis_per_dag"] = 1
    return RepairStepOperator(
        task_id=step.value,
        job=job,
        step=step,
        repair_form=form,
        pipeline=pipeline.name,
        connections=pipeline.connections,
        doc_md=runbook.repair_step_text(job, step),
        **options,
    )

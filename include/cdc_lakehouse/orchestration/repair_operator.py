"""The tasks of a repair: one step of its job each, and the outcome of its run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from cdc_lakehouse.config.models import Connections
from cdc_lakehouse.contract import ENV_OPTIONS, AirflowContext, Job, JobRequest, table_named_by
from cdc_lakehouse.orchestration.approval import PLAN_TASK, Answer, answer_of, plans_of
from cdc_lakehouse.orchestration.decisions import note_in
from cdc_lakehouse.orchestration.operator import RESULT_KEY, SparkJobOperator
from cdc_lakehouse.orchestration.outcome import OutcomeOperator
from cdc_lakehouse.orchestration.repair_forms import RepairForm, options_of, tables_to_repair
from cdc_lakehouse.orchestration.report_text import publish_report
from cdc_lakehouse.run_modes import RepairStep


class RepairStepOperator(SparkJobOperator):
    """Runs `spark_jobs/<repair>.py` with one step, for the tables of the form or of the approval."""

    def __init__(
        self,
        *,
        job: Job,
        step: RepairStep,
        repair_form: RepairForm,
        pipeline: str,
        connections: Connections,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            job=job, pipeline=pipeline, tables=(), connections=connections, by_name=False, **kwargs
        )
        self.step = step
        self._options: dict[str, str] = {}
        self.repair_form = repair_form

    def _request(self, context: Context) -> JobRequest:
        ti, run = context["ti"], context["dag_run"]
        answer = None if self.step is RepairStep.PLAN else _require_approval(context)
        return JobRequest(
            job=self.job,
            pipeline=self.pipeline,
            tables=tuple(self._tables_of(context)),
            airflow=AirflowContext(
                dag_id=ti.dag_id,
                run_id=ti.run_id,
                task_id=ti.task_id,
                try_number=ti.try_number,
                triggered_by=getattr(run, "triggering_user_name", None),
                note=note_in(run.conf),
            ),
            step=self.step,
            plans=() if answer is None else answer.approved_plans,
            approved_by=None if answer is None else answer.user,
        )

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        """Run the step; what the form says beside the tables reaches the job by its environment."""
        self._options = options_of(self.repair_form, context["dag_run"].conf)
        return super().execute(context)

    def _environment(self, result_file: Path) -> dict[str, str]:
        return {**super()._environment(result_file), ENV_OPTIONS: json.dumps(self._options)}

    def _tables_of(self, context: Context) -> list[str]:
        if self.step is RepairStep.PLAN:
            return list(tables_to_repair(context["dag_run"].conf))
        return [table_named_by(plan) for plan in _require_approval(context).approved_plans]


class RepairOutcomeOperator(OutcomeOperator):
    """Red when a step of the repair failed; green where a person rejected the plan, which changed nothing."""

    def execute(self, context: Context) -> None:
        summary = context["ti"].xcom_pull(task_ids=PLAN_TASK, key=RESULT_KEY) or {}
        sentence = _nothing_was_done(context) if summary and not summary.get("failed") else None
        if sentence is None:
            super().execute(context)
            return
        publish_report(f"# {sentence}", xcoms=context["ti"], log=self.log)
        self.log.info("%s", sentence)


def _nothing_was_done(context: Context) -> str | None:
    """Return why nothing was carried out where that is no failure; None where something was, or failed."""
    if not plans_of(context):
        return "nothing was changed: the plan changes nothing"
    answer = answer_of(context)
    if answer is not None and not answer.is_approval:
        return f"nothing was changed: {answer.user or 'a person'} rejected the plan"
    return None


def _require_approval(context: Context) -> Answer:
    """Return the answer of the person who approved. Raise where there is none: nothing may be done then."""
    answer = answer_of(context)
    if answer is None or not answer.is_approval:
        raise AirflowFailException(
            "nobody approved a plan of this run: nothing was changed. Clear `approve`."
        )
    return answer

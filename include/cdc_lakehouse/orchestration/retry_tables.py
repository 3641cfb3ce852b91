"""Try tables again whose ingest failed for a passing reason, while the others continue (decision 0055).

Airflow starts nothing below a task that waits for its retry. So the ingest leaves such tables to this task,
which runs after the merge of the others, and ingests and merges only these. It has the retries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from airflow.sdk import AssetAlias, Context

from cdc_lakehouse.config.models import Connections
from cdc_lakehouse.contract import Job
from cdc_lakehouse.errors import LakehouseError
from cdc_lakehouse.orchestration.advances import LAYER
from cdc_lakehouse.orchestration.assets import asset
from cdc_lakehouse.orchestration.connections import (
    check_spark_connection,
    connection_ids,
    wished_connection_ids,
)
from cdc_lakehouse.orchestration.operator import (
    RESULT_KEY,
    SPARK_JOBS,
    SparkJobOperator,
    end_with_supervisor,
)
from cdc_lakehouse.orchestration.results import Decision, Verdict, nothing_left, refused

_JOBS = (Job.BRONZE_INGEST, Job.SILVER_MERGE)


class RetryTablesOperator(SparkJobOperator):
    """Ingest and merge the tables that the task `ingest` left. A second execution finds them done."""

    def __init__(
        self, *, pipeline: str, connections: Connections, ingest: str, alias: str, **kwargs: Any
    ) -> None:
        super().__init__(
            job=Job.BRONZE_INGEST,
            pipeline=pipeline,
            tables=(),
            connections=connections,
            outlets=[AssetAlias(alias)],
            **kwargs,
        )
        self.ingest = ingest
        self.alias = alias
        self.ids_by_job = {job: connection_ids(job, connections) for job in _JOBS}
        self.wished_by_job = {job: wished_connection_ids(job, connections) for job in _JOBS}

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        """Return the summary. Raise as any job does while tables still fail."""
        summary = context["ti"].xcom_pull(task_ids=self.ingest, key=RESULT_KEY) or {}
        left = summary.get("left", [])
        if not left:
            self.log.info("no table was left")
            return dict(nothing_left(self.pipeline))
        try:
            check_spark_connection(self._conn_id)
            end_with_supervisor()
            ingested = self._run_job(Job.BRONZE_INGEST, left, context)
            reported, failed = ingested.summary["tables"], ingested.summary["failed"]
            ready = [table for table in left if table in reported and table not in failed]
            verdicts = [ingested, *([self._run_job(Job.SILVER_MERGE, ready, context)] if ready else [])]
        except LakehouseError as error:
            verdicts = [refused(self.job, pipeline=self.pipeline, error=error.as_table_error())]
        return self._conclude_all(verdicts, context)

    def _run_job(self, job: Job, tables: Sequence[str], context: Context) -> Verdict:
        self.job, self.tables, self.by_name = job, list(tables), True
        self.application = str(SPARK_JOBS / f"{job}.py")
        self.connection_ids, self.wished_connection_ids = self.ids_by_job[job], self.wished_by_job[job]
        verdict = self._run(context)
        advanced = self._advanced_by_all_tries(verdict, context, key=LAYER[job])
        return replace(verdict, summary={**verdict.summary, "advanced": advanced})

    def _conclude_all(self, verdicts: Sequence[Verdict], context: Context) -> dict[str, Any]:
        """End as one job with all verdicts. Tables are announced only once every table has succeeded."""
        for verdict in verdicts[:-1]:
            self.log.info("%s", verdict.log_line)
        last = verdicts[-1]
        decisions = {verdict.decision for verdict in verdicts}
        worst = next(one for one in (Decision.RETRY, Decision.FAIL, Decision.SUCCEED) if one in decisions)
        decisive = [verdict for verdict in verdicts if verdict.decision is not Decision.SUCCEED] or [last]
        failed = {table: code for verdict in verdicts for table, code in verdict.summary["failed"].items()}
        tables = {table: word for verdict in verdicts for table, word in verdict.summary["tables"].items()}
        headline = "; ".join(verdict.summary["headline"] for verdict in decisive)
        summary = {**last.summary, "headline": headline, "failed": failed, "tables": {**tables, **failed}}
        if worst is Decision.SUCCEED:
            self._announce({LAYER[Job(v.summary["job"])]: v.summary["advanced"] for v in verdicts}, context)
        message = "\n".join(verdict.message for verdict in decisive)
        return self._end(
            worst,
            message=message,
            log_line=last.log_line,
            summary=summary,
            report="\n\n".join(verdict.report or verdict.message for verdict in verdicts),
            context=context,
        )

    def _announce(self, advanced: Mapping[str, Mapping[str, Any]], context: Context) -> None:
        events = context["outlet_events"][AssetAlias(self.alias)]
        for layer, tables in advanced.items():
            for table, advance in tables.items():
                events.add(asset(self.pipeline, layer=layer, table=table), extra=advance)

"""The operator: one job of the package as one Spark application in client mode, or as plain Python.

Connections travel in the child's environment, made after the command: nothing that Airflow renders,
stores or logs ever holds a secret. A second execution of the same task instance is always safe:
what a job may commit is decided by the tables' own ledgers (`architecture` §5), not here.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import CommsDecoder
from airflow.sdk.execution_time.context import NEVER_EXPIRE

from cdc_lakehouse.config.models import Connections
from cdc_lakehouse.contract import AirflowContext, Job, JobRequest
from cdc_lakehouse.errors import LakehouseError, MissingConnectionError, UnknownNameError
from cdc_lakehouse.orchestration.advances import as_json, joined
from cdc_lakehouse.orchestration.connections import (
    check_spark_connection,
    child_environment,
    connection_ids,
    spark_secret,
    wished_connection_ids,
)
from cdc_lakehouse.orchestration.decisions import (
    MAINTENANCE_JOBS,
    decided,
    note_in,
    refuse_decisions_beside,
)
from cdc_lakehouse.orchestration.idle_check import look_before, look_command
from cdc_lakehouse.orchestration.interval_run import (
    TABLES,
    FormContext,
    asked_of_maintenance,
    asked_of_run,
    has_specified_interval,
    judges_interval,
    named_tables,
    tables_of_run,
)
from cdc_lakehouse.orchestration.log_relay import LogRelay
from cdc_lakehouse.orchestration.process import ChildProcess, end_with_parent
from cdc_lakehouse.orchestration.report_text import publish_report, with_tries
from cdc_lakehouse.orchestration.results import Decision, Verdict, judge, nothing_left, refused

SPARK_JOBS = Path(__file__).resolve().parents[3] / "spark_jobs"
WITHOUT_SPARK = frozenset({Job.VERIFY, Job.PREFLIGHT})
"""Jobs whose file Python runs by itself: a JVM would start for nothing."""
JOBS_WITH_INTERVAL = frozenset({Job.BRONZE_INGEST, Job.SILVER_MERGE})
RESULT_KEY = "return_value"
"""Airflow's own name for what a task returns; failed tasks push it too, for `outcome`."""
_ADVANCED_KEY = "advanced"
_SPECIFIED_KEY = "specified_interval"


class SparkJobOperator(SparkSubmitOperator):
    """Runs `spark_jobs/<job>.py` for some tables of a pipeline and acts on its exit code."""

    template_fields: Sequence[str] = ("application", "pipeline", "tables")

    def __init__(
        self,
        *,
        job: Job,
        pipeline: str,
        tables: Sequence[str],
        connections: Connections,
        group: str | None = None,
        by_name: bool = True,
        leaves_rest: bool = False,
        form: FormContext | None = None,
        **kwargs: Any,
    ) -> None:
        """`by_name` is false where tables are discovered: then all of the group or pipeline are meant.

        `form` is what the form of a run is read against.
        With `leaves_rest` a task below tries tables again that failed for the moment (decision 0055).
        """
        super().__init__(
            application=str(SPARK_JOBS / f"{job}.py"),
            conn_id=connections.spark,
            name=f"cdc_{pipeline}.{job}",
            durable=False,
            **kwargs,
        )
        self.job = job
        self.pipeline = pipeline
        self.tables = list(tables)
        self.group = group
        self.by_name = by_name
        self.form = form or FormContext()
        self.leaves_rest = leaves_rest
        self.connection_ids = connection_ids(job, connections)
        self.wished_connection_ids = wished_connection_ids(job, connections)
        self._child: ChildProcess | None = None
        self._killed = False

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        """The summary. Raises `AirflowFailException` where a retry cannot help, else `AirflowException`."""
        try:
            if self._leaves_all(context):
                self.log.info("the run is about other tables")
                return dict(nothing_left(self.pipeline, self.job))
            if self.job not in WITHOUT_SPARK:
                check_spark_connection(self._conn_id)
            end_with_supervisor()
            verdict = self._run(context)
        except LakehouseError as error:
            verdict = refused(self.job, pipeline=self.pipeline, error=error.as_table_error())
        return self._conclude(verdict, context)

    def on_kill(self) -> None:
        """Also called by the signal handler while `execute` waits, which then ends by itself."""
        self._killed = True
        if self._child is not None:
            self._child.kill()

    def _run(self, context: Context) -> Verdict:
        request = self._request(context)
        self.application_args = request.to_arguments()
        command = self._command()
        with TemporaryDirectory(prefix="cdc_lakehouse_") as folder:
            exit_code, text = self._looked(request, Path(folder) / "look.json")
            if exit_code is None:
                exit_code, text = self._submitted(command, Path(folder) / "result.json")
        return judge(
            self.job,
            pipeline=self.pipeline,
            tables=self._tables_of(context),
            exit_code=exit_code,
            text=text,
            leaves_rest=self.leaves_rest,
        )

    def _command(self) -> list[str]:
        if self.job in WITHOUT_SPARK:
            return [sys.executable, self.application, *(self.application_args or ())]
        return list(self._get_hook()._build_spark_submit_command(self.application))

    def _looked(self, request: JobRequest, result_file: Path) -> tuple[int | None, str | None]:
        """Exit code and result where no JVM is needed; no code where the job must run."""
        command, relay = look_command(request), LogRelay()
        if command is None:
            return None, None
        code = look_before(
            command,
            environment=self._environment(result_file),
            started=self._remember,
            log_line=lambda line: self._relay(relay, line),
        )
        if self._killed:
            return -signal.SIGTERM, None
        return (None, None) if code is None else (int(code), _text_of(result_file))

    def _submitted(self, command: Sequence[str], result_file: Path) -> tuple[int, str | None]:
        secret = {} if self.job in WITHOUT_SPARK else spark_secret(self._conn_id)
        environment = {**self._environment(result_file), **secret}
        return self._exit_code_of(command, environment), _text_of(result_file)

    def _environment(self, result_file: Path) -> dict[str, str]:
        return child_environment(
            os.environ,
            ids=self.connection_ids,
            wished=self.wished_connection_ids,
            result_file=str(result_file),
        )

    def _request(self, context: Context) -> JobRequest:
        ti, run = context["ti"], context["dag_run"]
        return JobRequest(
            job=self.job,
            pipeline=self.pipeline,
            tables=tuple(self._tables_of(context)) if self.by_name else named_tables(run.conf),
            group=self.group,
            airflow=AirflowContext(
                dag_id=ti.dag_id,
                run_id=ti.run_id,
                task_id=ti.task_id,
                try_number=ti.try_number,
                triggered_by=getattr(run, "triggering_user_name", None),
                note=note_in(run.conf),
            ),
            **decided(
                run.conf,
                job=self.job,
                pipeline=self.pipeline,
                tables=self.tables if self.by_name else None,
                known=self.form.tables,
            ),
            **self._asked_of(context),
        )

    def _asked_of(self, context: Context) -> dict[str, Any]:
        """Return what the run is about beside its tables."""
        run = context["dag_run"]
        if self.job in JOBS_WITH_INTERVAL:
            return asked_of_run(run, is_specified=self._is_specified(context))
        return asked_of_maintenance(run.conf) if self.job in MAINTENANCE_JOBS else {}

    def _is_specified(self, context: Context) -> bool:
        """Return what the first try of the task found out: the cron may be another one since."""
        run, store = context["dag_run"], context["task_state_store"]
        schedule = self.form.schedule
        if schedule is None or not judges_interval(run, schedule):
            return False
        pinned = store.get(_SPECIFIED_KEY)
        if pinned is None:
            pinned = has_specified_interval(run, schedule)
            store.set(_SPECIFIED_KEY, pinned, retention=NEVER_EXPIRE)
        return bool(pinned)

    def _tables_of(self, context: Context) -> list[str]:
        """Return the tables of this task that the run is about. Raises for a name that nobody knows."""
        conf = context["dag_run"].conf
        if self.form.tables is not None:
            error = UnknownNameError.of(
                TABLES, named_tables(conf), known=self.form.tables, kind="table", pipeline=self.pipeline
            )
            if error is not None:
                raise error
        refuse_decisions_beside(conf, pipeline=self.pipeline)
        return tables_of_run(conf, self.tables)

    def _leaves_all(self, context: Context) -> bool:
        return self.by_name and bool(self.tables) and not self._tables_of(context)

    def _remember(self, child: ChildProcess) -> None:
        """So that it can be killed, also when it was started while `on_kill` ran."""
        self._child = child
        if self._killed:
            child.kill()

    def _relay(self, relay: LogRelay, line: str) -> None:
        found = relay.read(line)
        if found is not None:
            self.log.log(found[0], "%s", found[1])

    def _exit_code_of(self, command: Sequence[str], environment: dict[str, str]) -> int:
        relay = LogRelay()
        try:
            child = ChildProcess(command, environment=environment)
        except FileNotFoundError:
            problem = f"the worker finds no {command[0]} on its PATH"
            raise MissingConnectionError(connection=self._conn_id, problem=problem) from None
        with child:
            self._remember(child)
            for line in child.lines():
                self._relay(relay, line)
            return child.wait()

    def _conclude(self, verdict: Verdict, context: Context) -> dict[str, Any]:
        earlier: Any = context["task_state_store"].get(_ADVANCED_KEY) or {}
        advanced = self._advanced_by_all_tries(verdict, context, key=_ADVANCED_KEY)
        summary: dict[str, Any] = {**verdict.summary, "advanced": advanced}
        if verdict.decision is Decision.SUCCEED and verdict.summary["left"]:
            self.log.warning("%s", verdict.message)
        return self._end(
            verdict.decision,
            message=verdict.message,
            log_line=verdict.log_line,
            summary=summary,
            report=with_tries(
                verdict.report or verdict.message,
                try_number=context["ti"].try_number,
                earlier=earlier,
                now=verdict.summary["advanced"],
            ),
            context=context,
        )

    def _end(
        self,
        decision: Decision,
        *,
        message: str,
        log_line: str,
        summary: dict[str, Any],
        report: str,
        context: Context,
    ) -> dict[str, Any]:
        publish_report(report, xcoms=context["ti"], log=self.log)
        if decision is not Decision.SUCCEED:
            context["ti"].xcom_push(key=RESULT_KEY, value=summary)
        self.log.info("%s", log_line)
        if decision is Decision.FAIL:
            raise AirflowFailException(message)
        if decision is Decision.RETRY:
            raise AirflowException(message)
        return summary

    def _advanced_by_all_tries(self, verdict: Verdict, context: Context, *, key: str) -> dict[str, Any]:
        """A try that moved one table and failed for another is followed by one that finds the first idle.

        Airflow deletes the XCom of the earlier try but keeps the task's state store.
        """
        store = context["task_state_store"]
        earlier: Any = store.get(key) or {}
        advanced = as_json(joined(earlier, verdict.summary["advanced"]))
        if advanced != earlier:
            store.set(key, advanced)
        return advanced


def _text_of(file: Path) -> str | None:
    return file.read_text(encoding="utf-8") if file.exists() else None


def end_with_supervisor() -> None:
    """A task process outlives its supervisor (seen for a minute and more), and Spark outlives it then too.

    SIGTERM makes Airflow call `on_kill`. Not for `dag.test()`, whose parent is somebody's shell.
    """
    if isinstance(getattr(task_runner, "SUPERVISOR_COMMS", None), CommsDecoder):
        end_with_parent(signal.SIGTERM)

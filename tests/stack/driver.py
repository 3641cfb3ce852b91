"""What a person does with the chain: change rows, trigger, look, clear."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import psutil
import pyarrow as pa

from cdc_lakehouse.contract import Job, TableResult
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.reports import newest_results
from cdc_lakehouse.lake.rows import read_rows
from local_stack import RunningStack
from local_stack.airflow_client import AirflowClient
from local_stack.proof import compare_pipeline

DAG_ID = "cdc_shop"
INGEST, MERGE, VERIFY = "main.bronze_ingest", "main.silver_merge", "main.verify"
RETRY = "main.retry_tables"
GREEN = dict.fromkeys((INGEST, MERGE, "main.announce", RETRY, VERIFY, "outcome"), "success")
SECONDS = 400.0


@dataclass(frozen=True)
class Run:
    """One DAG run that has ended."""

    dag_id: str
    run_id: str
    state: str
    states: dict[str, str | None]


class Chain:
    """Also remembers every command line that was to be seen on the machine while it was in use."""

    def __init__(self, stack: RunningStack, airflow: AirflowClient) -> None:
        self.stack = stack
        self.airflow = airflow
        self.lake = Lake(root=stack.lake_root(), pipeline="shop")
        self.runs: list[Run] = []
        self.command_lines: set[str] = set()
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def change(self, *statements: str) -> None:
        """In one transaction; returns when Kafka has it."""
        with self.stack.postgres.connect(user="shop") as connection:
            for statement in statements:
                connection.execute(statement.encode())
        self.stack.connector.wait_until_captured()

    def run(self, dag_id: str = DAG_ID) -> Run:
        return self.finish(dag_id, self.airflow.trigger(dag_id))

    def finish(self, dag_id: str, run_id: str, *, seconds: float = SECONDS) -> Run:
        state = self.airflow.wait_for_run(dag_id, run_id, seconds=seconds)
        tasks = self.airflow.tasks(dag_id, run_id)
        for task in tasks:
            print(f"{task.task_id:<22} {task.state} {task.queued} {task.seconds}")
        run = Run(dag_id, run_id, state, {task.task_id: task.state for task in tasks})
        self.runs.append(run)
        return run

    def differences(self) -> list[str]:
        return [found.sentence() for found in compare_pipeline(self.stack) if not found.equal]

    def bronze(self, table: str) -> pa.Table:
        return read_rows(self.lake.bronze(table))

    def silver(self, table: str) -> pa.Table:
        return read_rows(self.lake.silver(table))

    def report(self, job: Job, table: str) -> TableResult:
        """Of the newest attempt that had the table."""
        results = (result for result in newest_results(self.lake) if result.job is job)
        return next(told for result in results for told in result.tables if told.table == table)

    def _watch(self) -> None:
        while not self._ended.wait(0.2):
            for process in psutil.process_iter():
                with suppress(psutil.Error):
                    self.command_lines.add("\0".join(process.cmdline()))

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._watcher.join()


def rows(
    table: pa.Table, columns: Sequence[str], where: Callable[[dict[str, Any]], bool]
) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in columns) for row in table.to_pylist() if where(row)]

"""A round: a run while the shop is busy, a run after it has paused, and the comparison.

The DAG is not paused, because Airflow leaves runs of a paused DAG queued; its schedule is off all the
same: the scheduler of a stack that a demo owns starts nothing because of the clock.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Any, Self

import httpx

from local_stack.airflow_client import AirflowClient
from local_stack.demo.screen import Screen
from local_stack.demo.watch import Lives, RunWatch
from local_stack.demo.writer import ShopWriter
from local_stack.errors import StackError
from local_stack.proof import compare_pipeline
from local_stack.stack import RunningStack

DAG_ID = "cdc_shop"
_INGEST, _MERGE, _VERIFY = "main.bronze_ingest", "main.silver_merge", "main.verify"
_SECONDS_PER_RUN = 900.0


class RunFailedError(StackError):
    """The demo's own run did not succeed; the reason is the job's."""

    def __init__(self, run_id: str, why: str, url: str) -> None:
        super().__init__(f"{why} (run {run_id}, see {url}/dags/{DAG_ID}/runs)")


class NotEqualError(StackError):
    def __init__(self, tables: list[str]) -> None:
        super().__init__(f"silver is not what PostgreSQL is: {', '.join(tables)}")


class Demo:
    """The shop is written to from `with` on until its end."""

    def __init__(self, stack: RunningStack, screen: Screen) -> None:
        self._stack = stack
        self._screen = screen
        self._lives = Lives(stack)
        self._writer = ShopWriter(stack.postgres)
        self._airflow = AirflowClient(stack.airflow.client())
        self._left = ExitStack()
        self._number = 0

    def round(self) -> None:
        """Raises `NotEqualError` when silver is not its source, `RunFailedError` when a run failed."""
        self._number += 1
        with self._lives.to_blame():
            before = self._writer.transactions
            self._screen.title(f"round {self._number}: the shop is busy; triggering {DAG_ID}")
            self._run()
            self._writer.pause()
            written = self._writer.transactions - before
            self._screen.say(f"the shop pauses after {written} transactions; waiting for the connector")
            position = self._stack.connector.wait_until_captured()
            self._screen.title(f"Kafka has everything up to {position}; triggering {DAG_ID} to drain it")
            self._run()
            self._compare()
            self._writer.go_on()

    def _run(self) -> None:
        run_id = self._airflow.trigger(DAG_ID)
        watch = RunWatch(self._airflow, self._lives, dag_id=DAG_ID, run_id=run_id, tell=self._screen.task)
        state = self._airflow.wait_for_run(DAG_ID, run_id, seconds=_SECONDS_PER_RUN, watch=watch)
        if state != "success":
            why = next(iter(watch.failures.values()), f"the run is {state}")
            raise RunFailedError(run_id, why, self._stack.airflow.url)
        self._screen.arrivals(self._advances(run_id))
        self._screen.verdicts((self._airflow.xcom(DAG_ID, run_id, _VERIFY) or {}).get("tables", {}))

    def _advances(self, run_id: str) -> dict[str, dict[str, Any]]:
        """Per table what the ingest brought and where the merge took it."""
        found: dict[str, dict[str, Any]] = {}
        for task_id in (_INGEST, _MERGE):
            summary = self._airflow.xcom(DAG_ID, run_id, task_id) or {}
            for table, advance in summary.get("advanced", {}).items():
                known = found.setdefault(table, {"rows": advance["rows"], "versions": {}})
                known["versions"].update(advance["versions"])
                known["seen_through"] = advance["seen_through"] or known.get("seen_through")
                known["valid_through"] = advance["valid_through"]
        return found

    def _compare(self) -> None:
        comparisons = compare_pipeline(self._stack)
        self._screen.proof(comparisons)
        different = [found.table for found in comparisons if not found.equal]
        if different:
            raise NotEqualError(different)
        self._screen.title(
            "every silver table equals its source",
        )

    def __enter__(self) -> Self:
        with self._lives.to_blame():
            self._airflow.wait_for_dag(DAG_ID)
            self._give_up_open_runs()
            self._airflow.unpause(DAG_ID)
        self._left.callback(self._airflow.close)
        self._left.callback(self._pause)
        self._left.enter_context(self._writer)
        return self

    def _give_up_open_runs(self) -> None:
        """Those of a demo that was interrupted: ours would wait until Airflow has noticed that they died."""
        for run_id in self._airflow.open_runs(DAG_ID):
            self._screen.say(f"the run {run_id} of an interrupted demo is given up")
            self._airflow.fail(DAG_ID, run_id)

    def _pause(self) -> None:
        """For a stack that is started here later: its scheduler does look at the clock."""
        with suppress(httpx.HTTPError):
            self._airflow.pause(DAG_ID)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.close()

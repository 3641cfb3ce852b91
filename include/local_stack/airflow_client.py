"""Airflow's REST API as a person on call would use it: trigger, watch, read, clear."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import httpx

from local_stack.errors import StackError

FINISHED = frozenset({"success", "failed"})
FAILING = frozenset({"failed", "up_for_retry"})
_PAUSE = 0.5
_UNMAPPED = -1
"""The map index of a task that is not mapped."""


class DagMissingError(StackError):
    """Airflow does not know the DAG, mostly because its file cannot be imported."""

    def __init__(self, dag_id: str, reason: str) -> None:
        super().__init__(f"Airflow has no DAG {dag_id}: {reason}")


class NotInTimeError(StackError):
    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(f"after {seconds:.0f} s {what}")


@dataclass(frozen=True, slots=True)
class TaskRun:
    """One task of one run, as it stands now."""

    task_id: str
    state: str | None
    """None: not scheduled yet."""
    try_number: int
    queued: datetime | None
    started: datetime | None
    ended: datetime | None
    rendered: Mapping[str, Any]

    @classmethod
    def from_answer(cls, document: Mapping[str, Any]) -> TaskRun:
        return cls(
            task_id=document["task_id"],
            state=document["state"],
            try_number=document["try_number"],
            queued=_moment(document["queued_when"]),
            started=_moment(document["start_date"]),
            ended=_moment(document["end_date"]),
            rendered=document["rendered_fields"],
        )

    @property
    def seconds(self) -> float | None:
        if self.started is None or self.ended is None:
            return None
        return (self.ended - self.started).total_seconds()


def _nothing(_tasks: Sequence[TaskRun]) -> None:
    pass


class AirflowClient:
    """`http` is logged in already, for paths below `/api/v2`."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def close(self) -> None:
        self._http.close()

    def wait_for_dag(self, dag_id: str, *, seconds: float = 60.0) -> None:
        """The Dag processor reads the files some seconds after it is healthy."""
        deadline = time.monotonic() + seconds
        while self._http.get(f"/dags/{dag_id}").status_code != httpx.codes.OK:
            if time.monotonic() > deadline:
                raise DagMissingError(dag_id, self._import_error() or f"not after {seconds:.0f} s either")
            time.sleep(_PAUSE)

    def pause(self, dag_id: str) -> None:
        self._call("PATCH", f"/dags/{dag_id}", json={"is_paused": True})

    def unpause(self, dag_id: str) -> None:
        """A run that is triggered while the DAG is paused stays queued until it is not."""
        self._call("PATCH", f"/dags/{dag_id}", json={"is_paused": False})

    def trigger(
        self,
        dag_id: str,
        *,
        conf: Mapping[str, Any] | None = None,
        interval: tuple[datetime, datetime] | None = None,
        logical_date: datetime | None = None,
    ) -> str:
        """Return the new run's id. With an `interval` it is one that a person has specified by hand."""
        date = None if logical_date is None else logical_date.isoformat()
        body: dict[str, Any] = {"logical_date": date, "conf": dict(conf or {})}
        if interval is not None:
            start, end = (moment.isoformat() for moment in interval)
            body |= {"logical_date": end, "data_interval_start": start, "data_interval_end": end}
        return str(self._call("POST", f"/dags/{dag_id}/dagRuns", json=body)["dag_run_id"])

    def run_state(self, dag_id: str, run_id: str) -> str:
        return str(self._call("GET", _run(dag_id, run_id))["state"])

    def run_type(self, dag_id: str, run_id: str) -> str:
        return str(self._call("GET", _run(dag_id, run_id))["run_type"])

    def run_note(self, dag_id: str, run_id: str) -> str:
        """Return the note that the page of a run shows; empty without one."""
        return str(self._call("GET", _run(dag_id, run_id)).get("note") or "")

    def open_runs(self, dag_id: str) -> list[str]:
        """Ids of runs that are queued or running."""
        query = {"state": ["queued", "running"]}
        runs = self._call("GET", f"/dags/{dag_id}/dagRuns", params=query)["dag_runs"]
        return [run["dag_run_id"] for run in runs]

    def scheduled_runs(self, dag_id: str) -> dict[str, datetime]:
        """Return the runs that the schedule made, the newest first: id -> logical date."""
        query = {"run_type": "scheduled", "order_by": "-logical_date"}
        runs = self._call("GET", f"/dags/{dag_id}/dagRuns", params=query)["dag_runs"]
        return {run["dag_run_id"]: datetime.fromisoformat(run["logical_date"]) for run in runs}

    def fail(self, dag_id: str, run_id: str) -> None:
        """End a run with its tasks."""
        self._call("PATCH", _run(dag_id, run_id), json={"state": "failed"})

    def tasks(self, dag_id: str, run_id: str) -> list[TaskRun]:
        answer = self._call("GET", f"{_run(dag_id, run_id)}/taskInstances")
        return [TaskRun.from_answer(document) for document in answer["task_instances"]]

    def task(self, dag_id: str, run_id: str, task_id: str) -> TaskRun:
        return TaskRun.from_answer(self._call("GET", _task(dag_id, run_id, task_id)))

    def wait_for_run(
        self,
        dag_id: str,
        run_id: str,
        *,
        seconds: float,
        watch: Callable[[Sequence[TaskRun]], None] = _nothing,
    ) -> str:
        """`success` or `failed`; `watch` sees the tasks at every look, the last one included."""
        deadline = time.monotonic() + seconds
        while True:
            state = self.run_state(dag_id, run_id)
            watch(self.tasks(dag_id, run_id))
            if state in FINISHED:
                return state
            if time.monotonic() > deadline:
                raise NotInTimeError(f"the run {run_id} of {dag_id} is still {state}", seconds)
            time.sleep(_PAUSE)

    def wait_for_task(
        self, dag_id: str, run_id: str, task_id: str, *, states: frozenset[str], seconds: float
    ) -> TaskRun:
        deadline = time.monotonic() + seconds
        while (task := self.task(dag_id, run_id, task_id)).state not in states:
            if time.monotonic() > deadline:
                raise NotInTimeError(f"{task_id} is still {task.state}", seconds)
            time.sleep(_PAUSE)
        return task

    def clear(self, dag_id: str, run_id: str, *task_ids: str, downstream: bool = True) -> list[str]:
        """Let these tasks run again, with those below them; the ids of all that were cleared."""
        body = {
            "dry_run": False,
            "dag_run_id": run_id,
            "task_ids": list(task_ids),
            "only_failed": False,
            "include_downstream": downstream,
            "reset_dag_runs": True,
        }
        answer = self._call("POST", f"/dags/{dag_id}/clearTaskInstances", json=body)
        return [task["task_id"] for task in answer["task_instances"]]

    def log(self, dag_id: str, run_id: str, task_id: str, *, try_number: int) -> str:
        """The log of one try as text; errors with their type and message."""
        path = f"{_task(dag_id, run_id, task_id)}/logs/{try_number}"
        lines = []
        for entry in self._call("GET", path)["content"]:
            lines.append(entry["event"] if isinstance(entry, dict) else str(entry))
            if isinstance(entry, dict):
                lines += [f"{e['exc_type']}: {e['exc_value']}" for e in entry.get("error_detail") or ()]
        return "\n".join(lines)

    def xcom(self, dag_id: str, run_id: str, task_id: str, *, key: str = "return_value") -> Any:
        """None when the task pushed none."""
        path = f"{_task(dag_id, run_id, task_id)}/xcomEntries/{key}"
        answer = self._http.get(path, params={"deserialize": "true"})
        return None if answer.status_code == httpx.codes.NOT_FOUND else _checked(answer)["value"]

    def question(self, dag_id: str, run_id: str, task_id: str) -> dict[str, Any]:
        """Return what a task asks a person: `subject`, `body`, `params`, `options`."""
        return self._call("GET", f"{_task(dag_id, run_id, task_id)}/{_UNMAPPED}/hitlDetails")

    def wait_for_question(self, dag_id: str, run_id: str, task_id: str, *, seconds: float) -> None:
        """Wait until a task asks a person, and the scheduler has noticed that its process ended.

        Airflow 3.3.2 fails a task whose answer comes before that, within a second or two.
        """
        self.wait_for_task(dag_id, run_id, task_id, states=frozenset({"awaiting_input"}), seconds=seconds)
        asked = datetime.now(UTC)
        deadline = time.monotonic() + seconds
        while (beat := self._scheduler_heartbeat()) is None or beat <= asked:
            if time.monotonic() > deadline:
                raise NotInTimeError("the scheduler has not looked at its tasks", seconds)
            time.sleep(_PAUSE)

    def _scheduler_heartbeat(self) -> datetime | None:
        return _moment(self._call("GET", "/monitor/health")["scheduler"]["latest_scheduler_heartbeat"])

    def answer(
        self, dag_id: str, run_id: str, task_id: str, option: str, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Answer what a task asks, as the user who is logged in."""
        body = {"chosen_options": [option], "params_input": dict(params)}
        return self._call("PATCH", f"{_task(dag_id, run_id, task_id)}/{_UNMAPPED}/hitlDetails", json=body)

    def backfill(
        self,
        dag_id: str,
        *,
        from_date: datetime,
        to_date: datetime,
        reprocess: str = "none",
        max_active_runs: int = 1,
        backwards: bool = False,
        conf: Mapping[str, Any] | None = None,
    ) -> list[str]:
        """Return the ids of its runs, also of those that it took over. A DAG has one open backfill."""
        start, end = from_date.isoformat(), to_date.isoformat()
        body = {
            "dag_id": dag_id,
            "from_date": start,
            "to_date": end,
            "reprocess_behavior": reprocess,
            "max_active_runs": max_active_runs,
            "run_backwards": backwards,
            "dag_run_conf": dict(conf or {}),
        }
        self._call("POST", "/backfills", json=body)
        query = {"run_type": "backfill", "logical_date_gte": start, "logical_date_lte": end}
        runs = self._call("GET", f"/dags/{dag_id}/dagRuns", params=query)["dag_runs"]
        return [run["dag_run_id"] for run in runs]

    def open_backfills(self, dag_id: str) -> list[int]:
        """Return the backfills that have not ended; one does some time behind the last of its runs."""
        backfills = self._call("GET", "/backfills", params={"dag_id": dag_id})["backfills"]
        return [backfill["id"] for backfill in backfills if backfill["completed_at"] is None]

    def cancel_backfill(self, dag_id: str) -> None:
        """Cancel the open backfill of a DAG."""
        (number,) = self.open_backfills(dag_id)
        self._call("PUT", f"/backfills/{number}/cancel")

    def why(self, dag_id: str, run_id: str, task: TaskRun) -> str:
        """The headline of a task's last try: what the operator says first."""
        summary = self.xcom(dag_id, run_id, task.task_id)
        if isinstance(summary, dict) and summary.get("headline"):
            return str(summary["headline"])
        log = self.log(dag_id, run_id, task.task_id, try_number=max(1, task.try_number))
        raised = [line for line in log.splitlines() if "Exception: " in line or "Error: " in line]
        return raised[-1].partition(": ")[2] if raised else "see its log"

    def _import_error(self) -> str:
        errors = self._call("GET", "/importErrors")["import_errors"]
        return str(errors[0]["stack_trace"]).strip().splitlines()[-1] if errors else ""

    def _call(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        return _checked(self._http.request(method, path, **options))


def _checked(answer: httpx.Response) -> dict[str, Any]:
    """Airflow's own words are in `detail`."""
    if answer.is_error:
        raise httpx.HTTPStatusError(
            f"{answer.status_code} {answer.text[:500]}", request=answer.request, response=answer
        )
    return dict(answer.json())


def _run(dag_id: str, run_id: str) -> str:
    return f"/dags/{dag_id}/dagRuns/{quote(run_id, safe='')}"


def _task(dag_id: str, run_id: str, task_id: str) -> str:
    return f"{_run(dag_id, run_id)}/taskInstances/{task_id}"


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)

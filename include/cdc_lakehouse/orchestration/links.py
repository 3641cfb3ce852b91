"""Links and notes that Airflow shows on tasks and runs; the plugin imports no other module of the package.

Every process of Airflow imports it, so it is light; its models are imported where there is a database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.configuration import conf
from airflow.listeners import hookimpl
from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

_OURS = "cdc_"
"""How the ids of our DAGs begin."""
_OUTCOME = "outcome"
_MARK = "cdc_lakehouse: "
"""Beginning of every note that this module writes."""
_FEW = 3


class FirstFailedTaskLink(BaseOperatorLink):
    """From a red `outcome` straight to the task where the run went wrong."""

    name = "First failed task"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Asked once, in the task's process after it ended; empty when nothing failed."""
        failed = getattr(operator, "first_failed", None)
        if failed is None:
            return ""
        return _task_url(ti_key.dag_id, ti_key.run_id, failed)


class RunNotes:
    """Writes the note of a run, which its page shows: why nothing starts, and where it went wrong.

    Airflow calls it in the scheduler, with the run as the scheduler's session has it. A note that a person
    wrote is left alone; a second call writes the same again.
    """

    @hookimpl
    def on_dag_run_running(self, dag_run: Any, msg: str) -> None:  # noqa: ARG002 - Airflow's own arguments
        """Name missing pools: Airflow itself mentions them in the scheduler's log only."""
        missing = _missing_pools(dag_run)
        sentences = "; ".join(
            f"the pool `{pool}` does not exist, so its tasks wait: `airflow pools set {pool} 2 {pool}`, "
            "or Admin > Pools, and they start by themselves"
            for pool in missing
        )
        _write_note(dag_run, sentences)

    @hookimpl
    def on_dag_run_failed(self, dag_run: Any, msg: str) -> None:  # noqa: ARG002
        failed = [ti for ti in _own_tasks(dag_run) if str(ti.state) == "failed" and ti.task_id != _OUTCOME]
        failed.sort(key=lambda ti: (ti.end_date is None, ti.end_date, ti.task_id))
        links = [f"[{ti.task_id}]({_task_url(ti.dag_id, ti.run_id, ti.task_id)})" for ti in failed[:_FEW]]
        more = f" and {len(failed) - _FEW} more" if len(failed) > _FEW else ""
        _write_note(dag_run, f"first failed task: {', then '.join(links)}{more}" if links else "")

    @hookimpl
    def on_dag_run_success(self, dag_run: Any, msg: str) -> None:  # noqa: ARG002
        _write_note(dag_run, "")


def _own_tasks(dag_run: Any) -> list[Any]:
    """The run's tasks; none of a DAG that is not ours, or of a run outside of a scheduler."""
    session = _session_of(dag_run)
    if session is None or not dag_run.dag_id.startswith(_OURS):
        return []
    tasks: list[Any] = dag_run.get_task_instances(session=session)
    return tasks


def _missing_pools(dag_run: Any) -> list[str]:
    from airflow.models.pool import Pool
    from sqlalchemy import select

    wanted = {ti.pool for ti in _own_tasks(dag_run)}
    if not wanted:
        return []
    return sorted(wanted - set(_session_of(dag_run).scalars(select(Pool.pool).where(Pool.pool.in_(wanted)))))


def _session_of(dag_run: Any) -> Any:
    from sqlalchemy.orm import object_session

    return object_session(dag_run)


def _write_note(dag_run: Any, text: str) -> None:
    if not dag_run.dag_id.startswith(_OURS):
        return
    note = dag_run.note
    is_ours = note is None or note == "" or note.startswith(_MARK)
    wanted = f"{_MARK}{text}" if text else ""
    if is_ours and (note or "") != wanted:
        dag_run.note = wanted


def _task_url(dag_id: str, run_id: str, task_id: str) -> str:
    base = conf.get("api", "base_url", fallback="").rstrip("/")
    return f"{base}/dags/{dag_id}/runs/{quote(run_id, safe='')}/tasks/{task_id}"

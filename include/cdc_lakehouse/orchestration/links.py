"""Links that Airflow shows on a task; the plugin imports this module and nothing else of the package."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from airflow.configuration import conf
from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class FirstFailedTaskLink(BaseOperatorLink):
    """From a red `outcome` straight to the task where the run went wrong."""

    name = "First failed task"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Asked once, in the task's process after it ended; empty when nothing failed."""
        failed = getattr(operator, "first_failed", None)
        if failed is None:
            return ""
        base = conf.get("api", "base_url", fallback="").rstrip("/")
        return f"{base}/dags/{ti_key.dag_id}/runs/{quote(ti_key.run_id, safe='')}/tasks/{failed}"

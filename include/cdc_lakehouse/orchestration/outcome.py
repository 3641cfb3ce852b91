"""The two leaves of a run: `announce` tells readers what advanced, `outcome` gives the run its true state.

Airflow takes asset events only from a task that succeeds, and an ingest that failed for one table is
not such a task although eleven others advanced. So neither the ingest nor the merge emits events:
`announce` runs after both in any case, reads their summaries and succeeds. And because it and the
merge run although the ingest failed, a leaf must say that the run is not green: `outcome`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from airflow.sdk import AssetAlias, BaseOperator, Context
from airflow.sdk.exceptions import AirflowFailException

from cdc_lakehouse.orchestration.assets import asset
from cdc_lakehouse.orchestration.links import FirstFailedTaskLink
from cdc_lakehouse.orchestration.operator import RESULT_KEY
from cdc_lakehouse.orchestration.report_text import REPORT_KEY, publish_report, run_report_text


class AnnounceOperator(BaseOperator):
    """One asset event per table that advanced, with how far. Again after a clear: readers must expect it."""

    def __init__(self, *, pipeline: str, alias: str, layers: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(outlets=[AssetAlias(alias)], **kwargs)
        self.pipeline = pipeline
        self.alias = alias
        self.layers = dict(layers)
        """Layer -> the task that moves its tables."""

    def execute(self, context: Context) -> None:
        events = context["outlet_events"][AssetAlias(self.alias)]
        for layer, task_id in self.layers.items():
            summary = context["ti"].xcom_pull(task_ids=task_id, key=RESULT_KEY)
            for table, advance in (summary or {}).get("advanced", {}).items():
                advanced = asset(self.pipeline, layer=layer, table=table)
                events.add(advanced, extra=advance)
                self.log.info("%s advanced rows=%s", advanced.name, advance["rows"])


class OutcomeOperator(BaseOperator):
    """Red when any task of the run is not a success; its first line names tables and error codes."""

    operator_extra_links = (FirstFailedTaskLink(),)

    def __init__(self, *, watched: Sequence[str], table_count: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.watched = list(watched)
        self.table_count = table_count
        self.first_failed: str | None = None

    def execute(self, context: Context) -> None:
        ti = context["ti"]
        states = _states(ti.get_task_states(dag_id=ti.dag_id, task_ids=self.watched, run_ids=[ti.run_id]))
        failed = {name: states.get(name, "not run") for name in self.watched if states.get(name) != "success"}
        summaries = {name: ti.xcom_pull(task_ids=name, key=RESULT_KEY) or {} for name in self.watched}
        reports = {name: ti.xcom_pull(task_ids=name, key=REPORT_KEY) for name in failed}
        report = run_report_text(
            {name: states.get(name, "not run") for name in self.watched},
            {name: str(summary.get("headline", "")) for name, summary in summaries.items()},
            {name: str(text) for name, text in reports.items() if text},
            failed=list(failed),
        )
        publish_report(report, xcoms=ti, log=self.log)
        if not failed:
            self.log.info("all %d tasks succeeded", len(self.watched))
            return
        self.first_failed = next(iter(failed))
        raise AirflowFailException(
            outcome_message(failed=failed, summaries=summaries, table_count=self.table_count)
        )


def outcome_message(
    *, failed: Mapping[str, str], summaries: Mapping[str, Mapping[str, Any]], table_count: int
) -> str:
    """`2 of 12 tables failed: orders OFFSETS_LOST, …`, then one line per task that is not a success."""
    codes: dict[str, list[str]] = {}
    for task_id in failed:
        for table, code in summaries[task_id].get("failed", {}).items():
            if code not in codes.setdefault(table, []):
                codes[table].append(code)
    names = ", ".join(f"{table} {'/'.join(found)}" for table, found in codes.items())
    told = {table for task_id in failed for table in summaries[task_id].get("tables", {})}
    table_count = max(table_count, len(told))  # discovered ones are known to the tasks only
    first = (
        f"{len(codes)} of {table_count} tables failed: {names}" if codes else f"failed: {', '.join(failed)}"
    )
    lines = [
        f"{task_id} ({state}): {summaries[task_id].get('headline', 'see its log')}"
        for task_id, state in failed.items()
    ]
    return "\n".join([first, *lines])


def _states(by_run: Mapping[str, Any]) -> dict[str, str]:
    """The states of the one run that was asked for."""
    return {
        name: str(state) for tasks in by_run.values() for name, state in cast("dict[str, Any]", tasks).items()
    }

"""What jobs really wrote, given to everything that reads results: no reader asks for what no job writes."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from airflow.sdk.exceptions import AirflowFailException
from fake_spark import OFFSETS_LOST, failed, result  # type: ignore[import-not-found]

from cdc_lakehouse.config.loader import find_pipeline
from cdc_lakehouse.contract import REPAIRS, Job
from cdc_lakehouse.inspection.overview import TableOverview, overview
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.reports import write_reports
from cdc_lakehouse.orchestration.links import FirstFailedTaskLink
from cdc_lakehouse.orchestration.operator import RESULT_KEY
from cdc_lakehouse.orchestration.outcome import AnnounceOperator, OutcomeOperator
from cdc_lakehouse.orchestration.report_text import REPORT_KEY
from cdc_lakehouse.orchestration.results import Decision, Summary, judge
from recorded_results import ATTEMPT, recorded, recorded_text  # type: ignore[import-not-found]

if TYPE_CHECKING:
    from airflow.sdk.types import TaskInstanceKey

RECORDED = [job for job in Job if job not in (*REPAIRS, Job.PREFLIGHT)]
"""Results of repairs differ from step to step: their tests give them to their readers."""
VALID_THROUGH = "2026-01-01T12:05:00+00:00"


def summary_of(job: Job) -> Summary:
    verdict = judge(job, pipeline="shop", tables=["orders"], exit_code=0, text=recorded_text(job))
    assert verdict.decision is Decision.SUCCEED
    return verdict.summary


class TaskInstance(SimpleNamespace):
    """Of a run whose tasks ended with what the jobs wrote; `red` ones failed."""

    def xcom_pull(self, *, task_ids: str, key: str) -> Summary | None:
        return self.summaries.get(task_ids) if key == RESULT_KEY else None

    def xcom_push(self, *, key: str, value: str) -> None:
        self.pushed[key] = value

    def get_task_states(self, **_which: Any) -> dict[str, dict[str, str]]:
        return {self.run_id: {name: "failed" if name in self.red else "success" for name in self.summaries}}


def ended(*red: str, **summaries: Summary) -> TaskInstance:
    return TaskInstance(dag_id="cdc_shop", run_id="run", summaries=summaries, red=red, pushed={})


@pytest.mark.parametrize("job", RECORDED)
def test_the_verdict_names_the_table_and_its_counts(job):
    (table,) = recorded(job).tables
    verdict = judge(job, pipeline="shop", tables=["orders"], exit_code=0, text=recorded_text(job))

    assert verdict.decision is Decision.SUCCEED
    assert verdict.summary["tables"] == {"orders": table.word}
    assert verdict.summary["counts"] == table.counts


@pytest.mark.parametrize(("job", "rows"), [(Job.BRONZE_INGEST, 3), (Job.SILVER_MERGE, 3)])
def test_a_table_that_a_job_moved_tells_its_rows_and_up_to_when_it_is_complete(job, rows):
    assert summary_of(job)["advanced"]["orders"] == {
        "rows": rows,
        "ranges": {"cases.orders": {"0": [2, 5]}},
        "seen_through": recorded(job).tables[0].seen_through,
        "valid_through": VALID_THROUGH,
        "valid_position": "0/1F4",
        "versions": recorded(job).tables[0].versions,
        "attempts": [ATTEMPT],
    }


@pytest.mark.parametrize("job", [Job.OPTIMIZE, Job.VACUUM, Job.CLEAN_CHECKPOINTS, Job.VERIFY])
def test_a_job_that_moves_no_table_tells_of_no_advance(job):
    assert summary_of(job)["advanced"] == {}


def test_an_asset_event_says_how_many_rows_each_layer_got():
    events: list[tuple[str, int]] = []
    outlet = SimpleNamespace(add=lambda asset, extra: events.append((asset.name, extra["rows"])))
    task = AnnounceOperator(
        task_id="announce", pipeline="shop", alias="a", layers={"bronze": "ingest", "silver": "merge"}
    )
    ti = ended(ingest=summary_of(Job.BRONZE_INGEST), merge=summary_of(Job.SILVER_MERGE))
    task.execute({"outlet_events": {task.outlets[0]: outlet}, "ti": ti})  # type: ignore[typeddict-item]

    assert events == [("shop.bronze.orders", 3), ("shop.silver.orders", 3)]


def test_the_outcome_names_the_table_that_failed_and_links_to_its_task():
    lost = result(Job.BRONZE_INGEST, failed("orders", OFFSETS_LOST))
    red = judge(Job.BRONZE_INGEST, pipeline="shop", tables=["orders"], exit_code=65, text=lost.to_json())
    task = OutcomeOperator(task_id="outcome", watched=["ingest", "merge"], table_count=1)
    ti = ended("ingest", ingest=red.summary, merge=summary_of(Job.SILVER_MERGE))

    with pytest.raises(AirflowFailException, match=r"^1 of 1 tables failed: orders OFFSETS_LOST"):
        task.execute({"ti": ti})  # type: ignore[typeddict-item]
    assert "- `ingest` failed: 1 of 1 tables failed: orders OFFSETS_LOST" in ti.pushed[REPORT_KEY]
    run = cast("TaskInstanceKey", ti)
    assert FirstFailedTaskLink().get_link(task, ti_key=run).endswith("/runs/run/tasks/ingest")


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> TableOverview:
    """As `make tables` shows it after one run of every job."""
    root = tmp_path_factory.mktemp("lake").as_uri()
    for job in RECORDED:
        write_reports(Lake(root, "shop"), recorded(job), airflow=None)
    shown = overview(root, [find_pipeline("shop")], now=datetime(2026, 1, 2, tzinfo=UTC))
    return next(each for each in shown if each.table == "orders")


def test_the_overview_shows_what_every_job_said(table):
    assert (table.ingest, table.merge, table.verified) == ("advanced", "advanced", "equal")
    assert table.valid_through == datetime.fromisoformat(VALID_THROUGH)
    assert table.problem == ""

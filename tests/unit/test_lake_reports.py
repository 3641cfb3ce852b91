"""Run reports: what a job writes is what Airflow and people read back."""

from __future__ import annotations

import json

from cdc_lakehouse.contract import (
    AirflowContext,
    ExitCode,
    Job,
    JobResult,
    TableError,
    TableResult,
    TableStatus,
)
from cdc_lakehouse.lake import files
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.reports import newest_results, write_reports

AIRFLOW = AirflowContext("cdc_shop", "manual__2026-01-01T00:00:00+00:00", "main.bronze_ingest", 2)
ERROR = TableError(code="BUG", exit_code=ExitCode.BUG, sentence="it broke", advice="look")


def result(day: int, job: Job = Job.BRONZE_INGEST) -> JobResult:
    return JobResult(
        job=job,
        pipeline="shop",
        attempt=f"202601{day:02}T000000Z-0badcafe",
        tables=(
            TableResult("orders", TableStatus.ADVANCED, ranges={"t": {"0": (1, 5)}}, counts={"appended": 4}),
            TableResult("customers", TableStatus.FAILED, error=ERROR),
        ),
    )


def lake_at(tmp_path) -> Lake:
    return Lake(root=tmp_path.as_uri(), pipeline="shop")


def test_results_come_back_newest_first(tmp_path):
    lake = lake_at(tmp_path)
    for each in (result(1), result(3), result(2, Job.SILVER_MERGE)):
        write_reports(lake, each, airflow=AIRFLOW)

    assert newest_results(lake) == [result(3), result(2, Job.SILVER_MERGE), result(1)]
    assert newest_results(lake, days=1) == [result(3)]
    assert newest_results(lake, attempts=2) == [result(3), result(2, Job.SILVER_MERGE)]


def test_a_table_has_a_report_of_its_own(tmp_path):
    lake = lake_at(tmp_path)
    write_reports(lake, result(1), airflow=AIRFLOW)

    folder = lake.run(result(1).attempt, "bronze_ingest")
    orders = json.loads(files.read_text(f"{folder}/orders.json"))
    customers = json.loads(files.read_text(f"{folder}/customers.json"))

    assert (orders["v"], orders["status"], orders["ranges"]) == (1, "advanced", {"t": {"0": [1, 5]}})
    assert orders["airflow"]["run_id"] == "manual__2026-01-01T00:00:00+00:00"
    assert customers["error"]["code"] == "BUG"


def test_a_second_report_of_an_attempt_replaces_the_first(tmp_path):
    lake = lake_at(tmp_path)
    write_reports(lake, result(1), airflow=None)
    write_reports(lake, result(1), airflow=None)

    assert newest_results(lake) == [result(1)]


def test_an_attempt_that_was_killed_before_its_summary_is_passed_over(tmp_path):
    lake = lake_at(tmp_path)
    write_reports(lake, result(1), airflow=None)
    files.write_text(f"{lake.run(result(2).attempt, 'vacuum')}/orders.json", "{}")

    assert newest_results(lake) == [result(1)]

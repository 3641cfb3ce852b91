"""Run reports: one file per table and attempt, and their newest ones."""

from __future__ import annotations

import json
from dataclasses import asdict

from cdc_lakehouse.contract import AirflowContext, JobResult, TableResult
from cdc_lakehouse.lake import files
from cdc_lakehouse.lake.names import Lake

REPORT_VERSION = 1


def write_reports(lake: Lake, result: JobResult, *, airflow: AirflowContext | None) -> None:
    """A second call for the same attempt replaces its files."""
    folder = lake.run(result.attempt, result.job)
    for table in result.tables:
        files.write_text(f"{folder}/{table.table}.json", report(result, table, airflow=airflow))
    files.write_text(f"{folder}/_summary.json", result.to_json())


def report(result: JobResult, table: TableResult, *, airflow: AirflowContext | None) -> str:
    document = {
        **asdict(table),
        "v": REPORT_VERSION,
        "job": result.job,
        "pipeline": result.pipeline,
        "attempt": result.attempt,
        "airflow": None if airflow is None else asdict(airflow),
    }
    return json.dumps(document, indent=1, sort_keys=True)


def newest_results(lake: Lake, *, days: int = 7, attempts: int = 200) -> list[JobResult]:
    """Results of the newest attempts of the newest `days` that had any, newest first.

    The summary is written last: an attempt without one was killed before, or is writing now.
    """
    found: list[JobResult] = []
    for day in reversed(files.folders(lake.runs)[-days:]):
        for attempt in reversed(files.folders(day.uri)):
            for job in files.folders(attempt.uri):
                summary = files.read_text_if_there(f"{job.uri}/_summary.json")
                if summary is not None:
                    found.append(JobResult.from_json(summary))
            if len(found) >= attempts:
                return found
    return found

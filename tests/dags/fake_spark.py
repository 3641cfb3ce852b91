"""Results as jobs write them, and the stand-in for spark-submit that plays them."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cdc_lakehouse.contract import Job, JobResult, TableError, TableResult, TableStatus
from cdc_lakehouse.errors import BrokerUnavailableError, OffsetsLostError
from recorded_results import ATTEMPT, recorded_table  # type: ignore[import-not-found]

OFFSETS_LOST = OffsetsLostError(table="orders", decision="orders=shop.public.orders/0:5-9").as_table_error()
BROKER_AWAY = BrokerUnavailableError(bootstrap="broker:9092", reason="timed out").as_table_error()


def ingested(table: str, start: int = 0, end: int = 10) -> TableResult:
    """As `bronze_ingest` says that it has read these offsets."""
    rows = end - start
    return _recorded_as(Job.BRONZE_INGEST, table, start, end, rows=rows, counts={"appended": rows})


def merged(table: str, start: int = 0, end: int = 10) -> TableResult:
    """As `silver_merge` says that each of these offsets was a new row."""
    rows = end - start
    counts = {"read": rows, "events": rows, "rows_inserted": rows, "rows_updated": 0, "rows_deleted": 0}
    return _recorded_as(Job.SILVER_MERGE, table, start, end, rows=rows, counts=counts)


def _recorded_as(job: Job, table: str, start: int, end: int, **told: Any) -> TableResult:
    ranges = {f"shop.public.{table}": {"0": (start, end)}}
    moved: TableResult = recorded_table(job, table=table, ranges=ranges, **told)
    return moved


def idle(table: str) -> TableResult:
    return TableResult(table=table, status=TableStatus.IDLE)


def failed(table: str, error: TableError) -> TableResult:
    return TableResult(table=table, status=TableStatus.FAILED, error=error)


def result(job: Job, *tables: TableResult, attempt: str = ATTEMPT) -> JobResult:
    return JobResult(job=job, pipeline="shop", attempt=attempt, tables=tables)


def played(outcome: JobResult | None = None, **script: Any) -> dict[str, Any]:
    """What spark-submit shall do: end as this result says, unless told otherwise."""
    if outcome is not None:
        script = {"result": asdict(outcome), "exit": int(outcome.exit_code), **script}
    return script


def script(by_task: dict[str, dict[str, Any]] | None = None, **by_job: dict[str, Any]) -> None:
    """Job name -> what its application does; and the same for one task, by its id."""
    script_file().write_text(json.dumps({"by_job": by_job, "by_task": by_task or {}}))
    for call in script_file().parent.glob("*.call.json"):
        call.unlink()


def script_file() -> Path:
    return Path(os.environ["FAKE_SPARK"])


def call_of(job: Job) -> dict[str, Any]:
    """argv, environ, cmdline, pid and group of the application of that job."""
    call: dict[str, Any] = json.loads(script_file().with_name(f"{job}.call.json").read_text())
    return call


def was_called(job: Job) -> bool:
    return script_file().with_name(f"{job}.call.json").exists()

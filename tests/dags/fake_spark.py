"""Results as jobs write them, and the stand-in for spark-submit that plays them."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cdc_lakehouse.contract import ExitCode, Job, JobResult, TableError, TableResult, TableStatus

OFFSETS_LOST = TableError(
    code="OFFSETS_LOST",
    exit_code=ExitCode.DATA,
    sentence="orders stands at offset 5 of shop.public.orders/0, but Kafka holds 9..12",
    advice="Take a new snapshot of the table.",
)
BROKER_AWAY = TableError(
    code="BROKER_UNAVAILABLE",
    exit_code=ExitCode.RETRY,
    sentence="Kafka at broker:9092 did not answer: timed out",
    advice="Nothing was lost.",
)


def advanced(table: str, start: int = 0, end: int = 10) -> TableResult:
    return TableResult(
        table=table,
        status=TableStatus.ADVANCED,
        ranges={f"shop.public.{table}": {"0": (start, end)}},
        counts={"read": end - start, "appended": end - start, "applied": end - start, "undecodable": 0},
        seen_through="2026-01-01T00:00:00Z",
        valid_through="2026-01-01T00:00:01+00:00",
        valid_position="0/16B3748",
        versions={"bronze": 3},
    )


def idle(table: str) -> TableResult:
    return TableResult(table=table, status=TableStatus.IDLE)


def failed(table: str, error: TableError) -> TableResult:
    return TableResult(table=table, status=TableStatus.FAILED, error=error)


def result(job: Job, *tables: TableResult, attempt: str = "20260101T000000Z-00000001") -> JobResult:
    return JobResult(job=job, pipeline="shop", attempt=attempt, tables=tables)


def played(outcome: JobResult | None = None, **script: Any) -> dict[str, Any]:
    """What spark-submit shall do: end as this result says, unless told otherwise."""
    if outcome is not None:
        script = {"result": asdict(outcome), "exit": int(outcome.exit_code), **script}
    return script


def script(**by_job: dict[str, Any]) -> None:
    """Job name -> what its application does."""
    script_file().write_text(json.dumps({"by_job": by_job}))
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

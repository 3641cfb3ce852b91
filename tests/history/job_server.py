"""A warm driver of the product's own jobs: one session, any pipeline, one order per line."""

from __future__ import annotations

import gc
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from cdc_lakehouse import log
from cdc_lakehouse.application.application import Application, attempt_now
from cdc_lakehouse.application.session import LazySession
from cdc_lakehouse.bronze.job import ingest
from cdc_lakehouse.config.settings import Role, connection_from_environment
from cdc_lakehouse.config.storage_settings import storage_settings
from cdc_lakehouse.contract import Job, JobRequest, JobResult, TableResult
from cdc_lakehouse.lake.reports import write_reports
from cdc_lakehouse.silver.job import merge_tables

WORK: dict[Job, Callable[[Application], list[TableResult]]] = {
    Job.BRONZE_INGEST: ingest,
    Job.SILVER_MERGE: merge_tables,
}


def carry_out(order: Mapping[str, Any], engine: LazySession) -> list[dict[str, Any]]:
    """Every job as `application.main` runs it, but for the session, which stays."""
    results = []
    for name in order["jobs"]:
        job, attempt = Job(name), attempt_now()
        request = JobRequest(job=job, pipeline=order["pipeline"], tables=())
        with log.bound(pipeline=request.pipeline, attempt=attempt):
            made = replace(Application.from_request(request, attempt=attempt), spark=engine)
            tables = tuple(WORK[job](made))
            result = JobResult(job=job, pipeline=request.pipeline, attempt=attempt, tables=tables)
            write_reports(made.lake, result, airflow=None)
        results.append({**asdict(result), "exit_code": int(result.exit_code)})
    return results


def main() -> None:
    log.configure()
    replies = os.fdopen(int(sys.argv[1]), "w", buffering=1)
    engine = LazySession("history", storage=storage_settings(connection_from_environment(Role.STORAGE)))
    engine.session()

    def reply(answer: dict[str, Any]) -> None:
        replies.write(json.dumps(answer, default=str) + "\n")

    reply({"id": 0, "results": []})
    for line in sys.stdin:
        order = json.loads(line)
        try:
            reply({"id": order["id"], "results": carry_out(order, engine)})
        except Exception:  # noqa: BLE001 - whoever ordered it is told
            reply({"id": order["id"], "raised": traceback.format_exc()})
        # DataFrames in reference cycles keep their plans and broadcast tables in the JVM until then: after an
        # hour of drains two gigabytes were full of them.
        gc.collect()
    engine.stop()


if __name__ == "__main__":
    main()

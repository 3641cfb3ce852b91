"""A warm driver: one session, any lake, one order per line; the program of `driver.WarmDriver`."""

from __future__ import annotations

import gc
import json
import logging
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from threading import Lock
from typing import Any

from cdc_lakehouse import log
from cdc_lakehouse.application.application import Application, attempt_now
from cdc_lakehouse.application.session import LazySession
from cdc_lakehouse.bronze import table_decoder
from cdc_lakehouse.bronze.job import ingest
from cdc_lakehouse.bronze.replay_job import replay_tables
from cdc_lakehouse.config.history_choice import History
from cdc_lakehouse.config.loader import find_pipeline
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.config.settings import Role, connection_from_environment
from cdc_lakehouse.config.storage_settings import storage_settings
from cdc_lakehouse.config.values import duration
from cdc_lakehouse.contract import REPAIRS, Job, JobRequest, JobResult, TableResult
from cdc_lakehouse.lake.filesystem import is_object_store
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.reports import write_reports
from cdc_lakehouse.maintenance import job as maintenance_job
from cdc_lakehouse.maintenance import plan as maintenance_plan
from cdc_lakehouse.maintenance.job import clean_tables, optimize_tables, vacuum_tables
from cdc_lakehouse.repair.erase import Erase
from cdc_lakehouse.repair.operation import repair
from cdc_lakehouse.repair.quarantine import Quarantine
from cdc_lakehouse.repair.rebuild import Rebuild
from cdc_lakehouse.repair.retire import Retire
from cdc_lakehouse.repair.rewind import Rewind
from cdc_lakehouse.run_modes import RepairStep
from cdc_lakehouse.silver.job import merge_tables
from crash import baseline, faults, guards, identity, switches  # type: ignore[import-not-found]
from crash.broker import PIPELINE  # type: ignore[import-not-found]
from crash.records import PARTITIONS  # type: ignore[import-not-found]

logger = logging.getLogger(__name__)
WORK: dict[Job, Callable[[Application], list[TableResult]]] = {
    Job.BRONZE_INGEST: ingest,
    Job.SILVER_MERGE: merge_tables,
    Job.QUARANTINE_REPLAY: replay_tables,
    Job.OPTIMIZE: optimize_tables,
    Job.VACUUM: vacuum_tables,
    Job.CLEAN_CHECKPOINTS: clean_tables,
    **{each.job: repair(each) for each in (Rebuild(), Rewind(), Erase(), Retire(), Quarantine())},
}


def application(order: Mapping[str, Any], job: Job, engine: LazySession) -> Application:
    """As the job itself makes it; the lake and the attempt come with the order."""
    pipeline = find_pipeline(PIPELINE)
    retention = {"vacuum_retention": "0m"} if job is Job.VACUUM else {}
    maintenance = pipeline.maintenance.model_copy(update=retention)
    chosen = order.get("tables") or tuple(PARTITIONS)
    left_out = order.get("left_out", ())
    listed = tuple(_as_ordered(table, order) for table in pipeline.tables if table.name not in left_out)
    return Application(
        request=_request(order, job),
        pipeline=pipeline.model_copy(update={"maintenance": maintenance, "tables": listed}),
        tables=tuple(table for table in listed if table.name in chosen),
        lake=Lake(root=order["root"], pipeline=PIPELINE, scratch=_scratch(order["root"])),
        attempt=order.get("attempt") or attempt_now(),
        spark=engine,
    )


def _request(order: Mapping[str, Any], job: Job) -> JobRequest:
    """Return what the job is asked for. A step of a repair comes with its table, its plan and its options."""
    if job not in REPAIRS:
        return JobRequest(job=job, pipeline=PIPELINE, tables=())
    return JobRequest(
        job=job,
        pipeline=PIPELINE,
        tables=tuple(order["tables"]),
        step=RepairStep(order["step"]),
        plans=tuple(order.get("plans", ())),
        options=order.get("options", {}),
    )


def _as_ordered(table: Table, order: Mapping[str, Any]) -> Table:
    """Return the table with the settings that the order has for it."""
    changes: dict[str, Any] = {}
    if "max_offsets" in order:
        changes["max_offsets_per_trigger"] = order["max_offsets"]
    if table.name in order.get("history", ()):
        changes["history"] = History()
    return table.model_copy(update=changes)


def _scratch(root: str) -> str:
    """As the job itself: checkpoints of a lake in a bucket lie on the driver's disk."""
    if not is_object_store(root):
        return ""
    return (Path(tempfile.gettempdir()) / root.rpartition("/")[2]).as_uri()


def carry_out(order: Mapping[str, Any], engine: LazySession) -> list[dict[str, Any]]:
    """One result per job; all of them are carried out, as in Airflow (`all_done`)."""
    switches.off.set(frozenset(order.get("guards_off", ())))
    suffered = faults.Faults.of(order)
    faults.current.set(suffered)
    identity.current.set(identity.of_order(order, os.environ.get(identity.VARIABLE)))
    for statement in order.get("sql", ()):  # what somebody does by hand
        engine.session().sql(statement).collect()
    results = []
    for name in order["jobs"]:
        if name == baseline.JOB:
            baseline.drained(engine.session(), order)
            continue
        job = Job(name)
        made = application(order, job, engine)
        with log.bound(lake=order["root"].rpartition("/")[2], attempt=made.attempt):
            tables = WORK[job](made)
            result = JobResult(job=job, pipeline=PIPELINE, attempt=made.attempt, tables=tuple(tables))
            write_reports(made.lake, result, airflow=None)
        commits = suffered.commits
        results.append({**asdict(result), "exit_code": int(result.exit_code), "commits": commits})
    return results


def forget_lake(engine: LazySession) -> None:
    """Let the JVM free what it keeps of a lake that no order names again.

    Delta caches the log of every table for an hour, with the plans of its snapshots. DataFrames in reference
    cycles keep theirs until Python's collector runs, which it seldom does in a process of many objects. After
    a hundred lakes both filled two gigabytes, and the collector of the JVM took four fifths of its time.
    """
    gc.collect()
    jvm: Any = engine.session().sparkContext._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def main() -> None:
    log.configure()
    replies = os.fdopen(int(sys.argv[1]), "w", buffering=1)
    guard = Lock()
    storage = storage_settings(connection_from_environment(Role.STORAGE))
    engine = LazySession("crash", storage=None if storage.s3 is None else storage)
    engine.session()
    faults.install()
    guards.install()
    identity.install()
    # A pipeline may not say it; here it stands for the week that nobody waits for.
    setattr(maintenance_job, "duration", lambda text: timedelta(0) if text == "0m" else duration(text))  # noqa: B010
    # OPTIMIZE shall have work at every table, however few files it has.
    setattr(maintenance_plan, "LEAST_SAVED", 1)  # noqa: B010
    # Nobody waits here for a registry that lags behind either: what is unknown is undecodable at once.
    setattr(table_decoder, "PERSISTS", timedelta(0))  # noqa: B010

    def reply(answer: dict[str, Any]) -> None:
        with guard:
            replies.write(json.dumps(answer, default=str) + "\n")

    def answer(order: dict[str, Any]) -> None:
        try:
            reply({"id": order["id"], "results": carry_out(order, engine)})
        except faults.EndedError:
            reply({"id": order["id"], "results": []})  # a process that is gone says nothing
        except Exception:  # noqa: BLE001 - whoever ordered it is told
            reply({"id": order["id"], "raised": traceback.format_exc()})
        finally:
            forget_lake(engine)

    reply({"id": 0, "ready": True})
    with ThreadPoolExecutor(int(sys.argv[2])) as pool:
        for line in sys.stdin:
            pool.submit(copy_context().run, answer, json.loads(line))
    engine.stop()


if __name__ == "__main__":
    main()

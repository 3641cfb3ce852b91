"""Measure many small tables: what each costs one application that is new, has news, or has none."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.results import Lap, Result, summary  # type: ignore[import-not-found]
from bench.tables_source import (  # type: ignore[import-not-found]
    PIPELINE,
    RECORDS,
    Topics,
    many_topics,
)
from bench.workloads import TABLE_COUNT  # type: ignore[import-not-found]
from cdc_lakehouse.contract import ENV_RESULT

_ROOT = Path(__file__).parents[2]
_INGEST = ["spark-submit", str(_ROOT / "spark_jobs" / "bronze_ingest.py")]
_MERGE = ["spark-submit", str(_ROOT / "spark_jobs" / "silver_merge.py")]
_LOOK = [sys.executable, "-m", "cdc_lakehouse.bronze"]


class WrongRoundError(Exception):
    """A round did something else than it was to measure."""


def measure(*, folder: Path) -> Iterator[list[Result]]:
    """One application per round, each a process of its own as Airflow starts it.

    A hundred tables are a hundred measurements: nothing is repeated, and the start of Spark, once for all
    of them, is left out of the seconds; of the CPU time it is a part.
    """
    with many_topics(folder) as topics:
        topics.send()
        yield [_round("tables_new", _INGEST, topics)]
        topics.send()
        yield [_round("tables_news", _INGEST, topics)]
        yield [_round("tables_idle", _LOOK, topics)]
        yield [_round("tables_merge", _MERGE, topics)]


def _round(name: str, command: list[str], topics: Topics) -> Result:
    result_file = topics.folder / f"{name}.json"
    environment = topics.environment() | {ENV_RESULT: str(result_file)}
    before, load = _children_cpu(), os.getloadavg()[0]
    with (topics.folder / f"{name}.log").open("wb") as log:
        ended = subprocess.run(
            [*command, "--pipeline", PIPELINE], env=environment, check=False, stdout=log, stderr=log
        )
    cpu = _children_cpu() - before
    if ended.returncode:
        told = (topics.folder / f"{name}.log").read_text(encoding="utf-8")
        raise WrongRoundError(f"{name} ended with {ended.returncode}: {told[-2000:]}")
    told = json.loads(result_file.read_text(encoding="utf-8"))
    _verify(name, told)
    start = told["seconds"].get("session", 0.0)
    seconds = told["seconds"]["all"] - start
    print(
        f"{name}: {seconds / TABLE_COUNT:.4f} s a table by the clock, {cpu / TABLE_COUNT:.3f} CPU-seconds "
        f"with the start of Spark ({start:.1f} s); load {load:.1f} before",
        file=sys.stderr,
        flush=True,
    )
    lap = Lap(TABLE_COUNT * RECORDS, seconds, cpu)
    return summary([lap], part="tables", workload=name, variant="ours", bytes_per_record=0.0, rss=0)


def _verify(name: str, told: dict[str, Any]) -> None:
    """Every table did exactly its work; what a table holds, its ledger tells."""
    idle = name == "tables_idle"
    for table in told["tables"]:
        if table["status"] != ("idle" if idle else "advanced"):
            raise WrongRoundError(f"{name}: {table['table']} is {table['status']}")
        appended = table["counts"].get("appended", RECORDS)
        bad = table["counts"].get("undecodable", 0)
        if not idle and (appended, bad) != (RECORDS, 0):
            raise WrongRoundError(f"{name}: {table['table']} {table['counts']}")
    if len(told["tables"]) != TABLE_COUNT:
        raise WrongRoundError(f"{name}: {len(told['tables'])} tables")


def _children_cpu() -> float:
    """Of processes that ended, with all that they had waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

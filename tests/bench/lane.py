"""A lane: one variant of a workload in a Spark of its own, which runs a lap when it is asked.

In one JVM for all, the compiled code of each variant would be shaped by what the others did before:
Spark's projections are shared, and a call that saw many kinds of columns stays slow for those with few.
A job that drains has a JVM to itself. The laps still go in turns, so that all lanes see the same machine.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from bench.processes import megabytes, worker_pids  # type: ignore[import-not-found]
from bench.results import Lap  # type: ignore[import-not-found]
from bench.spark_session import Engine, engine  # type: ignore[import-not-found]
from bench.spark_variants import VARIANTS  # type: ignore[import-not-found]
from bench.timing import timed  # type: ignore[import-not-found]
from bench.verify_spark import verify  # type: ignore[import-not-found]
from bench.workloads import UDF, Workload  # type: ignore[import-not-found]
from cdc_lakehouse.bronze.batch_size import limit

_SHOWN = 2000


@dataclass(frozen=True, slots=True)
class Looked:
    """One lap, and the largest memory so far, read while the workers wait for the next task."""

    lap: Lap
    worker_peak: float
    jvm_peak: float


class Lane:
    """In this process: a handle of the process that has the Spark."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def bytes_per_record(self) -> float:
        return self._pool.submit(_bytes_per_record).result()

    def run(self) -> Looked:
        return self._pool.submit(_run).result()


@contextmanager
def lane(workload: Workload, name: str, *, folder: Path) -> Iterator[Lane]:
    """Open and verified. The records lie in `folder`, where the other lanes find them."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        pool.submit(_open, workload.name, name, folder).result()
        try:
            yield Lane(pool)
        finally:
            pool.submit(_close).result()


@dataclass(slots=True)
class _Racer:
    engine: Engine
    tag: str
    records: int
    block: DataFrame
    result: DataFrame


_mine = ExitStack()
_racers: list[_Racer] = []
"""Of this process: one, from `_open` on."""


def _open(workload_name: str, name: str, folder: Path) -> None:
    workload = next(each for each in UDF if each.name == workload_name)
    variant, stream = VARIANTS[name.removesuffix("_clean")], workload.stream_of(name)
    spark = _mine.enter_context(engine(folder / workload.name / name, records=folder))
    limit(spark.session, by_bytes=stream.shape.wide)
    block = spark.rows(stream, workload.block)
    spark.tagged(f"verify/{workload.name}/{name}")
    bad = verify(variant, stream, block, size=workload.block, folder=spark.folder)
    if bool(bad) != bool(stream.corrupt):
        raise ValueError(f"{workload.name} {name}: {bad} records were undecodable")
    # Its functions are built under its own tag, so workers are started for it alone.
    tag = f"{workload.name}/{name}"
    spark.tagged(tag)
    copies = workload.copies[name]
    rows = variant.plan(stream, spark.rows(stream, workload.block, copies))
    _racers.append(_Racer(spark, tag, workload.block * copies, block, rows))


def _close() -> None:
    _mine.close()


def _run() -> Looked:
    (racer,) = _racers
    jvm = racer.engine.jvm
    try:
        lap = timed(jvm, racer.result, racer.records)
    except (PySparkException, Py4JError) as exc:
        # What the JVM raised does not pass from process to process.
        raise RuntimeError(f"{racer.tag}: {str(exc)[:_SHOWN]}") from None
    peaks = [megabytes(pid, "VmHWM") for pid in worker_pids(jvm, racer.tag)]
    return Looked(lap, max(peaks, default=0.0), megabytes(jvm, "VmHWM"))


def _bytes_per_record() -> float:
    (racer,) = _racers
    (sizes,) = racer.block.selectExpr("avg(length(key) + length(value))").collect()
    return float(sizes[0])

"""One way to drain, in a Spark of its own, which drains the whole topic when it is asked."""

from __future__ import annotations

import multiprocessing
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from bench.comparing import undecodable  # type: ignore[import-not-found]
from bench.drain_source import BLOCK, Source  # type: ignore[import-not-found]
from bench.drain_variants import VARIANTS  # type: ignore[import-not-found]
from bench.expected import WrongRowError  # type: ignore[import-not-found]
from bench.lane import Looked  # type: ignore[import-not-found]
from bench.ledger_cost import batch_seconds  # type: ignore[import-not-found]
from bench.processes import cpu_seconds, megabytes, tree_of, worker_pids  # type: ignore[import-not-found]
from bench.results import Lap  # type: ignore[import-not-found]
from bench.spark_session import Engine, engine  # type: ignore[import-not-found]

VERIFIED = 5_000


class DrainLane:
    """In this process: a handle of the process that has the Spark."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def run(self) -> Looked:
        return self._pool.submit(_run).result()

    def batches(self, how: str, count: int) -> list[float]:
        """Seconds of small batches, committed one by one."""
        return self._pool.submit(_batches, how, count).result()


@contextmanager
def drain_lane(name: str, source: Source, *, folder: Path) -> Iterator[DrainLane]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        pool.submit(_open, name, source, folder / name).result()
        try:
            yield DrainLane(pool)
        finally:
            pool.submit(_close).result()


@dataclass(slots=True)
class _Racer:
    name: str
    engine: Engine
    source: Source
    verified: bool = False


_mine = ExitStack()
_racers: list[_Racer] = []
"""Of this process: one, from `_open` on."""


def _open(name: str, source: Source, folder: Path) -> None:
    spark = _mine.enter_context(engine(folder, records=folder))
    spark.tagged(f"drain/{name}")
    _racers.append(_Racer(name, spark, source))


def _close() -> None:
    _mine.close()


def _run() -> Looked:
    """The whole topic into a new table, which is thrown away; the first one is verified."""
    (racer,) = _racers
    jvm, folder = racer.engine.jvm, racer.engine.folder / "lake"
    shutil.rmtree(folder, ignore_errors=True)
    before, began = tree_of(jvm), time.perf_counter()
    table = VARIANTS[racer.name].run(racer.engine.session, racer.source, folder)
    wall = time.perf_counter() - began
    lap = Lap(racer.source.records, wall, cpu_seconds(before, tree_of(jvm)))
    if not racer.verified:
        _verify(racer, table)
        racer.verified = True
    peaks = [megabytes(pid, "VmHWM") for pid in worker_pids(jvm, f"drain/{racer.name}")]
    return Looked(lap, max(peaks, default=0.0), megabytes(jvm, "VmHWM"))


def _verify(racer: _Racer, table: Path) -> None:
    """Every record is there, and the first ones are what fastavro reads."""
    gives = VARIANTS[racer.name].gives
    if gives is None:
        return
    rows = racer.engine.session.read.format("delta").load(str(table))
    if (count := rows.count()) != racer.source.records:
        raise WrongRowError(f"{racer.name}: {count} rows for {racer.source.records} records")
    verified = str(racer.engine.folder / "verified")
    first = rows.where(f"partition = 0 AND offset < {VERIFIED}")
    first.write.mode("overwrite").parquet(verified)
    found = pq.read_table(verified).sort_by("offset").to_pylist(maps_as_pydicts="strict")
    if [row["offset"] for row in found] != list(range(VERIFIED)):
        raise WrongRowError(f"{racer.name}: not the first {VERIFIED} records of partition 0")
    if undecodable(racer.name, gives, racer.source.stream, found, BLOCK):
        raise WrongRowError(f"{racer.name}: undecodable records")


def _batches(how: str, count: int) -> list[float]:
    (racer,) = _racers
    folder = racer.engine.folder / how
    found: list[float] = batch_seconds(
        racer.engine.session, racer.source.stream, how, count=count, folder=folder
    )
    return found

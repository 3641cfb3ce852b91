"""Measure inside Spark: all variants of a workload in turns, each in Python workers of its own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from bench.processes import (  # type: ignore[import-not-found]
    cpu_seconds,
    megabytes,
    tree_of,
    worker_pids,
)
from bench.results import Lap, Result, summary  # type: ignore[import-not-found]
from bench.spark_session import Engine  # type: ignore[import-not-found]
from bench.spark_variants import VARIANTS  # type: ignore[import-not-found]
from bench.verify_spark import verify  # type: ignore[import-not-found]
from bench.workloads import Workload  # type: ignore[import-not-found]


@dataclass(slots=True)
class Racer:
    variant: str
    tag: str
    records: int
    result: DataFrame
    laps: list[Lap] = field(default_factory=list)
    worker_peak: float = 0.0
    jvm_peak: float = 0.0

    def run(self, jvm: int) -> None:
        """One repetition. The peak is read while the workers wait for the next task."""
        self.laps.append(timed(jvm, self.result, self.records))
        peaks = [megabytes(pid, "VmHWM") for pid in worker_pids(jvm, self.tag)]
        self.worker_peak = max([self.worker_peak, *peaks])
        self.jvm_peak = megabytes(jvm, "VmHWM")


def timed(jvm: int, rows: DataFrame, records: int) -> Lap:
    """Compute every value of every row and throw it away."""
    before, began = tree_of(jvm), time.perf_counter()
    rows.write.format("noop").mode("overwrite").save()
    wall = time.perf_counter() - began
    return Lap(records, wall, cpu_seconds(before, tree_of(jvm)))


def measure(
    engine: Engine, workload: Workload, *, repetitions: int, only: Sequence[str] = ()
) -> list[Result]:
    """One result per variant; the first repetition of each warms up and is dropped."""
    names = [
        name for name in workload.copies if _possible(engine, name) and name in (only or workload.copies)
    ]
    racers = [_racer(engine, workload, name) for name in names]
    for _ in range(repetitions + 1):
        for racer in racers:
            racer.run(engine.jvm)
    size = _bytes_per_record(engine.rows(workload.stream, workload.block))
    engine.forget()
    return [
        summary(
            racer.laps[1:],
            part=workload.part,
            workload=workload.name,
            variant=racer.variant,
            bytes_per_record=size,
            rss=round(racer.worker_peak),
            jvm=round(racer.jvm_peak),
        )
        for racer in racers
    ]


def skipped(engine: Engine, workload: Workload) -> list[str]:
    """What is not measured, and why."""
    missing = [name for name in workload.copies if not _possible(engine, name)]
    return [
        *(f"{workload.name} {name}: {reason}" for name, reason in workload.skipped.items()),
        *(f"{workload.name} {name}: its jar is not fetched (group spark-bench)" for name in missing),
    ]


def _possible(engine: Engine, name: str) -> bool:
    return name != "from_avro" or engine.spark_avro


def _racer(engine: Engine, workload: Workload, name: str) -> Racer:
    """Verified; its functions are built under its own tag, so its workers are started for it."""
    variant, stream = VARIANTS[name.removesuffix("_clean")], workload.stream_of(name)
    block = engine.rows(stream, workload.block)
    engine.tagged(f"verify/{workload.name}/{name}")
    bad = verify(variant, stream, block, size=workload.block, folder=engine.folder)
    if bool(bad) != bool(stream.corrupt):
        raise ValueError(f"{workload.name} {name}: {bad} records were undecodable")
    tag = f"{workload.name}/{name}"
    engine.tagged(tag)
    copies = workload.copies[name]
    rows = engine.rows(stream, workload.block, copies)
    return Racer(name, tag, workload.block * copies, variant.plan(stream, rows))


def _bytes_per_record(block: DataFrame) -> float:
    (sizes,) = block.selectExpr("avg(length(key) + length(value))").collect()
    return float(sizes[0])

"""Measure variants side by side: a process each, pinned to one core, repetitions interleaved."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.variants import VARIANTS  # type: ignore[import-not-found]
from bench.workloads import WORKLOADS, batches  # type: ignore[import-not-found]


@dataclass(frozen=True, slots=True)
class Result:
    workload: str
    variant: str
    records: int
    repetitions: int
    median_rps: int
    min_rps: int
    max_rps: int
    median_mb_per_s: float
    cpu_s_per_million: float
    peak_rss_mb: int


@dataclass(frozen=True, slots=True)
class _Lap:
    wall: float
    cpu: float


def measure(workload: str, *, records: int, repetitions: int) -> list[Result]:
    """One result per variant. The first lap of each warms up and is dropped."""
    with _workers(workload, records) as workers:
        size = sum(worker.recv() for worker in workers.values()) / len(workers)
        laps: dict[str, list[_Lap]] = {name: [] for name in workers}
        for _ in range(repetitions + 1):
            for name, worker in workers.items():
                worker.send("lap")
                laps[name].append(worker.recv())
        peaks = {name: _asked(worker, "peak") for name, worker in workers.items()}
    return [
        _result(workload, name, laps[name][1:], records=records, size=size, peak=peaks[name]) for name in laps
    ]


def _result(workload: str, variant: str, laps: list[_Lap], *, records: int, size: float, peak: int) -> Result:
    rates = [records / lap.wall for lap in laps]
    return Result(
        workload=workload,
        variant=variant,
        records=records,
        repetitions=len(laps),
        median_rps=round(statistics.median(rates)),
        min_rps=round(min(rates)),
        max_rps=round(max(rates)),
        median_mb_per_s=round(statistics.median(rates) * size / records / 1e6, 1),
        cpu_s_per_million=round(statistics.median(lap.cpu for lap in laps) * 1e6 / records, 2),
        peak_rss_mb=peak,
    )


@contextmanager
def _workers(workload: str, records: int) -> Iterator[dict[str, Connection]]:
    """A spawned process per variant: none inherits what another one has loaded."""
    context = get_context("spawn")
    found, processes = {}, []
    for variant in VARIANTS:
        here, there = context.Pipe()
        process = context.Process(target=_serve, args=(there, workload, variant.name, records), daemon=True)
        process.start()
        there.close()
        found[variant.name] = here
        processes.append(process)
    try:
        yield found
    finally:
        for connection in found.values():
            connection.close()
        for process in processes:
            process.join(timeout=10)
            process.kill()


def _asked(worker: Connection, what: str) -> Any:
    worker.send(what)
    return worker.recv()


def _serve(connection: Connection, workload_name: str, variant_name: str, records: int) -> None:
    """The child: says how many bytes it will read, then answers until nobody asks any more."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    workload = next(each for each in WORKLOADS if each.name == workload_name)
    variant = next(each for each in VARIANTS if each.name == variant_name)
    sent = workload.records(records)
    work = list(batches(sent))
    connection.send(sum(len(key) + len(value) for key, value in sent))
    del sent
    decode = variant.prepare(workload)
    while True:
        try:
            asked = connection.recv()
        except EOFError:
            return
        if asked == "peak":
            connection.send(_peak_rss_mb())
        else:
            began, cpu = time.perf_counter(), time.process_time()
            for batch in work:
                decode(batch)
            connection.send(_Lap(time.perf_counter() - began, time.process_time() - cpu))


def _peak_rss_mb() -> int:
    """Of this process alone: `ru_maxrss` starts with what the parent held when it made the child."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) // 1024

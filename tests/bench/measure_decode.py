"""Measure decoding alone: a process for each variant, pinned to one core, repetitions in turns."""

from __future__ import annotations

import cProfile
import io
import os
import pstats
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.comparing import undecodable  # type: ignore[import-not-found]
from bench.decode_variants import VARIANTS  # type: ignore[import-not-found]
from bench.processes import megabytes  # type: ignore[import-not-found]
from bench.results import Lap, Result, summary  # type: ignore[import-not-found]
from bench.streams import written  # type: ignore[import-not-found]
from bench.workloads import DECODE, Workload  # type: ignore[import-not-found]


def measure(workload: Workload, *, repetitions: int, folder: Path) -> list[Result]:
    """One result per variant, each verified; the first repetition of each warms up and is dropped."""
    paths = {name: verified(workload, name, folder) for name in workload.copies}
    with _workers(workload, paths) as workers:
        laps: dict[str, list[Lap]] = {name: [] for name in workers}
        for _ in range(repetitions + 1):
            for name, worker in workers.items():
                laps[name].append(_asked(worker, "lap"))
        peaks = {name: _asked(worker, "peak") for name, worker in workers.items()}
    table = pq.read_table(next(iter(paths.values())))
    size = sum(sum(map(len, table[name].to_pylist())) for name in ("key", "value")) / len(table)
    return [
        summary(
            laps[name][1:],
            part=workload.part,
            workload=workload.name,
            variant=name,
            bytes_per_record=size,
            rss=peaks[name],
        )
        for name in laps
    ]


def verified(workload: Workload, name: str, folder: Path) -> Path:
    """The file with the records of a variant, after it has read every one of them right."""
    variant, stream = VARIANTS[name.removesuffix("_clean")], workload.stream_of(name)
    path: Path
    (path,) = written(stream, workload.block, folder)
    given = variant.prepare(stream)(_batch(path))
    rows = given.to_pylist(maps_as_pydicts="strict") if isinstance(given, pa.RecordBatch) else given
    bad = undecodable(name, variant.gives, stream, rows, workload.block)
    if bool(bad) != bool(stream.corrupt):
        raise ValueError(f"{workload.name} {name}: {bad} records were undecodable")
    return path


def profile(workload: Workload, *, folder: Path, laps: int = 30) -> str:
    """Where our decoder spends its time on these records."""
    batch = _batch(verified(workload, "ours", folder))
    decode = VARIANTS["ours"].prepare(workload.stream)
    decode(batch)
    with cProfile.Profile() as profiler:
        for _ in range(laps):
            decode(batch)
    text = io.StringIO()
    pstats.Stats(profiler, stream=text).sort_stats("tottime").print_stats(30)
    return text.getvalue()


def _batch(path: Path) -> pa.RecordBatch:
    """As Spark hands it over: read from one IPC message."""
    (batch,) = pq.read_table(path).combine_chunks().to_batches()
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return pa.ipc.open_stream(sink.getvalue()).read_next_batch()


@contextmanager
def _workers(workload: Workload, paths: dict[str, Path]) -> Iterator[dict[str, Connection]]:
    """Spawned processes: none inherits what another one has loaded."""
    context = get_context("spawn")
    found, processes = {}, []
    for name, path in paths.items():
        here, there = context.Pipe()
        process = context.Process(target=_serve, args=(there, workload.name, name, path), daemon=True)
        process.start()
        there.close()
        found[name] = here
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


def _serve(connection: Connection, workload_name: str, name: str, path: Path) -> None:
    """The child: answers until nobody asks any more."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    workload = next(each for each in DECODE if each.name == workload_name)
    batch, copies = _batch(path), workload.copies[name]
    decode = VARIANTS[name.removesuffix("_clean")].prepare(workload.stream_of(name))
    while True:
        try:
            asked = connection.recv()
        except EOFError:
            return
        if asked == "peak":
            connection.send(round(megabytes(os.getpid(), "VmHWM")))
        else:
            began, cpu = time.perf_counter(), time.process_time()
            for _ in range(copies):
                decode(batch)
            connection.send(Lap(len(batch) * copies, time.perf_counter() - began, time.process_time() - cpu))

"""Memory of the Python workers over a drain of millions of records: is it flat?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Event, Thread

from bench.processes import megabytes, worker_pids  # type: ignore[import-not-found]
from bench.results import Result, summary  # type: ignore[import-not-found]
from bench.shapes import ORDERS  # type: ignore[import-not-found]
from bench.spark_session import Engine  # type: ignore[import-not-found]
from bench.spark_variants import VARIANTS  # type: ignore[import-not-found]
from bench.streams import Stream  # type: ignore[import-not-found]
from bench.timing import timed  # type: ignore[import-not-found]
from bench.workloads import MEMORY  # type: ignore[import-not-found]

WORKLOAD = MEMORY
BLOCK = 100_000
COPIES = {"baseline": 1, "ours": 10}
"""Per micro-batch: a million records of ours, fewer of the baseline, which takes ten times as long."""
MICRO_BATCHES = 5
_EVERY = 0.5


@dataclass(slots=True)
class _Watch:
    jvm: int
    tag: str
    rss: list[float] = field(default_factory=list)
    """Of the largest worker, at each sample."""

    def sample(self) -> None:
        sizes = [megabytes(pid, "VmRSS") for pid in worker_pids(self.jvm, self.tag)]
        self.rss.append(max(sizes, default=0.0))


def measure(engine: Engine) -> list[Result]:
    """Micro-batches one after the other, as a drain does them; the same workers do all of them."""
    stream = Stream(ORDERS)
    return [_drained(engine, stream, name, copies) for name, copies in COPIES.items()]


def _drained(engine: Engine, stream: Stream, name: str, copies: int) -> Result:
    tag, jvm = f"{WORKLOAD}/{name}", engine.jvm
    engine.tagged(tag)
    rows = VARIANTS[name].plan(stream, engine.rows(stream, BLOCK, copies))
    laps, peaks = [], []
    for _ in range(MICRO_BATCHES):
        with _sampled(jvm, tag) as watch:
            laps.append(timed(jvm, rows, BLOCK * copies))
        peaks.append(round(max(watch.rss)))
    whole = max(megabytes(pid, "VmHWM") for pid in worker_pids(jvm, tag))
    result = summary(
        laps[1:],
        part="udf",
        workload=WORKLOAD,
        variant=name,
        bytes_per_record=0.0,
        rss=round(whole),
        jvm=round(megabytes(jvm, "VmHWM")),
    )
    return replace(result, rss_mb_by_micro_batch=tuple(peaks))


@contextmanager
def _sampled(jvm: int, tag: str) -> Iterator[_Watch]:
    """Looks twice a second, and once when the work is done."""
    watch, done = _Watch(jvm, tag), Event()

    def look() -> None:
        while not done.wait(_EVERY):
            watch.sample()

    thread = Thread(target=look, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        done.set()
        thread.join()
        watch.sample()

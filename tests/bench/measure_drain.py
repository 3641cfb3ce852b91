"""Measure draining: a topic of a million records into bronze, and what the ledger costs a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.drain_lane import DrainLane, drain_lane  # type: ignore[import-not-found]
from bench.drain_source import BLOCK, filled_broker  # type: ignore[import-not-found]
from bench.drain_variants import VARIANTS  # type: ignore[import-not-found]
from bench.lane import Looked  # type: ignore[import-not-found]
from bench.ledger_cost import ROWS, WAYS  # type: ignore[import-not-found]
from bench.results import Lap, Result, summary  # type: ignore[import-not-found]
from bench.shapes import ORDERS  # type: ignore[import-not-found]
from bench.spark_session import spark_avro_jars  # type: ignore[import-not-found]
from bench.streams import Stream  # type: ignore[import-not-found]
from bench.workloads import DRAIN, LEDGER  # type: ignore[import-not-found]

RECORDS = 1_000_000
BATCHES = 23
"""Small ones per way to commit; the first three warm up. Delta writes two checkpoints meanwhile."""
_WARM = 3


def measure(*, repetitions: int, folder: Path, only: Sequence[str] = ()) -> Iterator[list[Result]]:
    """One result per variant, in turns; the first drain of each warms up, is verified and dropped.

    What the ledger costs comes behind them, in the warm Spark of ours.
    """
    names = [name for name in VARIANTS if _possible(name) and name in (only or tuple(VARIANTS))]
    stream = Stream(ORDERS)
    with filled_broker(stream, RECORDS, folder=folder) as source, ExitStack() as opened:
        lanes = {name: opened.enter_context(drain_lane(name, source, folder=folder)) for name in names}
        rounds = [{name: each.run() for name, each in lanes.items()} for _ in range(repetitions + 1)]
        yield [_drained(name, [each[name] for each in rounds], stream) for name in names]
        if "ours" in lanes:
            yield _ledger_cost(lanes["ours"])


def _drained(name: str, looked: Sequence[Looked], stream: Stream) -> Result:
    return summary(
        [each.lap for each in looked[1:]],
        part="drain",
        workload=DRAIN,
        variant=name,
        bytes_per_record=sum(len(key) + len(value) for key, value in stream.records(BLOCK)) / BLOCK,
        rss=round(looked[-1].worker_peak),
        jvm=round(looked[-1].jvm_peak),
    )


def skipped() -> list[str]:
    return [
        f"{DRAIN} {name}: its jar is not fetched (group spark-bench)"
        for name in VARIANTS
        if not _possible(name)
    ]


def _possible(name: str) -> bool:
    return name != "from_avro" or bool(spark_avro_jars())


def _ledger_cost(lane: DrainLane) -> list[Result]:
    """In one warm Spark, one way after the other."""
    seconds = {way: lane.batches(way, BATCHES)[_WARM:] for way in WAYS}
    return [
        summary(
            [Lap(ROWS, each, 0.0) for each in found],
            part="drain",
            workload=LEDGER,
            variant=way,
            bytes_per_record=0.0,
            rss=0,
        )
        for way, found in seconds.items()
    ]

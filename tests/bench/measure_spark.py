"""Measure inside Spark: all variants of a workload in turns, each in a lane of its own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.lane import Lane, Looked, lane  # type: ignore[import-not-found]
from bench.results import Result, summary  # type: ignore[import-not-found]
from bench.spark_session import spark_avro_jars  # type: ignore[import-not-found]
from bench.workloads import Workload  # type: ignore[import-not-found]


def measure(workload: Workload, *, repetitions: int, folder: Path, only: Sequence[str] = ()) -> list[Result]:
    """One result per variant; the first repetition of each warms up and is dropped."""
    wanted = only or tuple(workload.copies)
    names = [name for name in workload.copies if _possible(name) and name in wanted]
    with ExitStack() as opened:
        lanes = {name: opened.enter_context(lane(workload, name, folder=folder)) for name in names}
        laps = _in_turns(lanes, repetitions + 1)
        sizes = {name: each.bytes_per_record() for name, each in lanes.items()}
    return [
        summary(
            [each.lap for each in looked[1:]],
            part=workload.part,
            workload=workload.name,
            variant=name,
            bytes_per_record=sizes[name],
            rss=round(looked[-1].worker_peak),
            jvm=round(looked[-1].jvm_peak),
        )
        for name, looked in laps.items()
    ]


def _in_turns(lanes: dict[str, Lane], laps: int) -> dict[str, list[Looked]]:
    rounds = [{name: each.run() for name, each in lanes.items()} for _ in range(laps)]
    return {name: [each[name] for each in rounds] for name in lanes}


def skipped(workload: Workload) -> list[str]:
    """What is not measured, and why."""
    missing = [name for name in workload.copies if not _possible(name)]
    return [
        *(f"{workload.name} {name}: {reason}" for name, reason in workload.skipped.items()),
        *(f"{workload.name} {name}: its jar is not fetched (group spark-bench)" for name in missing),
    ]


def _possible(name: str) -> bool:
    return name != "from_avro" or bool(spark_avro_jars())

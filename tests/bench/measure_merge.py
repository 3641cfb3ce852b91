"""Measure merging: a batch of changes into a large table, our way and the usual one."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pyspark.sql import functions as F

from bench.merge_changes import Batch  # type: ignore[import-not-found]
from bench.merge_lake import MergeLake, merge_lake  # type: ignore[import-not-found]
from bench.merge_rows import NAMES  # type: ignore[import-not-found]
from bench.merge_variants import VARIANTS  # type: ignore[import-not-found]
from bench.processes import cpu_seconds, tree_of  # type: ignore[import-not-found]
from bench.results import Lap, Result, summary  # type: ignore[import-not-found]
from bench.spark_session import engine  # type: ignore[import-not-found]
from bench.workloads import SMALL, Merge  # type: ignore[import-not-found]
from cdc_lakehouse.application.session import LazySession

IN_SMALL = "ours_in_1m"
"""Beside `ours` in the large table: the same number of changes in the small one."""


class WrongMergeError(Exception):
    """The two tables do not hold the same rows."""


def measure(
    *, names: Sequence[str], repetitions: int, folder: Path, only: Sequence[str] = ()
) -> Iterator[list[Result]]:
    """One table at a time; the first lap of each workload warms up, is verified and dropped.

    Each lap is another batch, so silver grows small files and deletion vectors as it does between two nights.
    """
    variants = [name for name in VARIANTS if name in (only or tuple(VARIANTS))]
    small: dict[tuple[str, int], Result] = {}
    with engine(folder, records=folder) as spark:
        merges = [merge for name in names if (merge := Merge.named(name)) is not None]
        for rows in sorted({each.rows for each in merges}):
            lake = merge_lake(LazySession("bench"), folder / f"lake_{rows}", rows=rows)
            for workload in (each for each in merges if each.rows == rows):
                laps = _laps(lake, workload, variants, repetitions=repetitions, jvm=spark.jvm)
                found = [_told(workload, name, laps[name]) for name in variants]
                what = (workload.spread, workload.changes)
                if rows == SMALL:
                    small.update((what, each) for each in found if each.variant == "ours")
                elif what in small:
                    found.append(replace(small[what], workload=workload.name, variant=IN_SMALL))
                yield found


def _laps(
    lake: MergeLake, workload: Merge, variants: Sequence[str], *, repetitions: int, jvm: int
) -> dict[str, list[Lap]]:
    laps: dict[str, list[Lap]] = {name: [] for name in variants}
    for lap in range(repetitions + 1):
        span = lake.add(Batch(workload.changes, workload.spread, lap))
        for name in variants:
            before, began = tree_of(jvm), time.perf_counter()
            VARIANTS[name](lake, span)
            wall = time.perf_counter() - began
            laps[name].append(Lap(workload.changes, wall, cpu_seconds(before, tree_of(jvm))))
            print(f"{workload.name} {name}: {wall:.2f} s", file=sys.stderr, flush=True)
        if lap == 0 and set(variants) == set(VARIANTS):
            verify(lake)
    return {name: found[1:] for name, found in laps.items()}


def verify(lake: MergeLake) -> None:
    """Both hold the same rows: their number, and a sum over all values of all of them."""
    session = lake.engine.isolated()
    told = []
    for uri in (lake.silver, lake.plain):
        rows = session.read.format("delta").load(uri)
        told.append(
            rows.agg(F.count(F.lit(1)), F.bit_xor(F.xxhash64(*NAMES)), F.sum("quantity")).collect()[0]
        )
    if told[0] != told[1]:
        raise WrongMergeError(f"ours {tuple(told[0])}, plain {tuple(told[1])}")


def _told(workload: Merge, name: str, laps: Sequence[Lap]) -> Result:
    return summary(laps, part="merge", workload=workload.name, variant=name, bytes_per_record=0.0, rss=0)

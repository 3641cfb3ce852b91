"""One measured variant of one workload, and the arithmetic between variants."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

BASELINES = ("baseline", "confluent")
CLEAN = "ours_clean"
"""Our decoder on the same records without damage, or of one schema id."""


@dataclass(frozen=True, slots=True)
class Lap:
    records: int
    wall: float
    cpu: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    part: str
    workload: str
    variant: str
    records: int
    """Per repetition."""
    repetitions: int
    median_rps: int
    min_rps: int
    max_rps: int
    median_mb_per_s: float
    cpu_s_per_million: float
    peak_rss_mb: int
    """Of the largest process that decodes; 0 where no process but the JVM does."""
    jvm_peak_rss_mb: int = 0
    ratio_to_baseline: float | None = None
    cpu_ratio_to_baseline: float | None = None
    ratio_to_clean: float | None = None
    """How many times slower than `ours_clean` of the same workload."""
    rss_mb_by_micro_batch: tuple[int, ...] = ()
    """Of the largest worker, where a drain of several micro-batches is watched."""

    @property
    def growth(self) -> float | None:
        """Memory in the last micro-batch against the second: the first one warms up."""
        sizes = self.rss_mb_by_micro_batch
        return round(sizes[-1] / sizes[1], 3) if len(sizes) > 2 and sizes[1] else None


def summary(
    laps: Sequence[Lap],
    *,
    part: str,
    workload: str,
    variant: str,
    bytes_per_record: float,
    rss: int,
    jvm: int = 0,
) -> Result:
    """Of the laps that count: the warm-up is not among them."""
    rates = [lap.records / lap.wall for lap in laps]
    middle = statistics.median(rates)
    return Result(
        part=part,
        workload=workload,
        variant=variant,
        records=laps[0].records,
        repetitions=len(laps),
        median_rps=round(middle),
        min_rps=round(min(rates)),
        max_rps=round(max(rates)),
        median_mb_per_s=round(middle * bytes_per_record / 1e6, 1),
        cpu_s_per_million=round(statistics.median(lap.cpu / lap.records for lap in laps) * 1e6, 3),
        peak_rss_mb=rss,
        jvm_peak_rss_mb=jvm,
    )


def with_ratios(results: Sequence[Result]) -> list[Result]:
    """Each beside the others of its workload: how many times the usual way, how much slower than clean."""
    return [
        _compared(each, [other for other in results if other.workload == each.workload]) for each in results
    ]


def _compared(result: Result, others: Sequence[Result]) -> Result:
    usual = next((each for each in others if each.variant in BASELINES), None)
    clean = next((each for each in others if each.variant == CLEAN), None)
    if usual is not None:
        result = replace(
            result,
            ratio_to_baseline=round(result.median_rps / usual.median_rps, 2),
            cpu_ratio_to_baseline=_share(usual.cpu_s_per_million, result.cpu_s_per_million),
        )
    if clean is not None and result.variant == "ours":
        result = replace(result, ratio_to_clean=round(clean.median_rps / result.median_rps, 3))
    return result


def _share(over: float, under: float) -> float | None:
    return round(over / under, 2) if under else None

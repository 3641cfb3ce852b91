"""Ratios that the project has promised itself, and whether a run meets them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bench.results import Result  # type: ignore[import-not-found]
from bench.workloads import TABLE_COUNT  # type: ignore[import-not-found]

Verdict = Literal["goal met", "floor met", "not met", "not measured"]


@dataclass(frozen=True, slots=True)
class Target:
    what: str
    workload: str
    variant: str
    against: str
    measure: Literal["rate", "slowdown", "memory", "milliseconds", "ms per table"]
    """`milliseconds`: how many more ours takes for one repetition. `ms per table`: against nothing."""
    floor: float
    goal: float

    @property
    def unit(self) -> str:
        return "x" if self.measure in ("rate", "slowdown", "memory") else " ms"

    @property
    def more_is_better(self) -> bool:
        return self.measure == "rate"


@dataclass(frozen=True, slots=True)
class Outcome:
    target: Target
    ratio: float | None
    verdict: Verdict


TARGETS = (
    Target("decode, one id, one core", "decode_envelope", "ours", "confluent", "rate", 45, 120),
    Target("decode, 50 ids in a batch", "decode_ids_50", "ours", "ours_clean", "slowdown", 2, 1.2),
    Target("UDF in Spark, full envelope", "udf_envelope", "ours", "baseline", "rate", 18, 25),
    Target("UDF in Spark, full envelope", "udf_envelope", "ours", "from_avro", "rate", 1.4, 2),
    Target("0.1 % corrupt records, one core", "decode_corrupt", "ours", "ours_clean", "slowdown", 1.3, 1.05),
    Target("0.1 % corrupt records, in Spark", "udf_corrupt", "ours", "ours_clean", "slowdown", 1.3, 1.05),
    Target("drain Kafka -> bronze Delta, with commit", "drain_bronze", "ours", "baseline", "rate", 14, 22),
    Target("drain Kafka -> bronze Delta, with commit", "drain_bronze", "ours", "from_avro", "rate", 2.3, 3.5),
    Target("drain Kafka -> bronze Delta, with commit", "drain_bronze", "ours", "identity", "rate", 0.7, 0.9),
    Target("the ledger, per batch", "drain_ledger", "ours", "plain", "milliseconds", 150, 0),
    Target("an idle table of a hundred", "tables_idle", "ours", "ours", "ms per table", 20, 2),
    Target("a small table with news, of a hundred", "tables_news", "ours", "ours", "ms per table", 600, 50),
    Target(
        "MERGE 10 k uniform changes into 20 M rows",
        "merge_uniform_10k_in_20m",
        "ours",
        "plain",
        "rate",
        5,
        20,
    ),
    Target(
        "MERGE 10 k recent changes, 20 M rows against 1 M",
        "merge_recent_10k_in_20m",
        "ours",
        "ours_in_1m",
        "slowdown",
        1.5,
        1.1,
    ),
    Target("memory of a Python worker", "udf_memory", "ours", "baseline", "memory", 1.2, 1),
)


def outcomes(results: Sequence[Result]) -> list[Outcome]:
    """One per target, in their order."""
    return [_outcome(target, results) for target in TARGETS]


def _outcome(target: Target, results: Sequence[Result]) -> Outcome:
    pair = [_found(results, target.workload, name) for name in (target.variant, target.against)]
    ours, other = pair
    if ours is None or other is None:
        return Outcome(target, None, "not measured")
    ratio = round(_ratio(target, ours, other), 2)
    return Outcome(target, ratio, verdict(target, ratio))


def verdict(target: Target, ratio: float) -> Verdict:
    """A bound that is reached exactly is met."""
    sign = 1 if target.more_is_better else -1
    if sign * ratio >= sign * target.goal:
        return "goal met"
    return "floor met" if sign * ratio >= sign * target.floor else "not met"


def _ratio(target: Target, ours: Result, other: Result) -> float:
    over, under = {
        "rate": (ours.median_rps, other.median_rps),
        "slowdown": (other.median_rps, ours.median_rps),
        "memory": (ours.peak_rss_mb, other.peak_rss_mb),
        "milliseconds": (1000 * (_seconds(ours) - _seconds(other)), 1),
        "ms per table": (1000 * _seconds(ours), TABLE_COUNT),
    }[target.measure]
    return float(over / under)


def _seconds(result: Result) -> float:
    return float(result.records / result.median_rps)


def _found(results: Sequence[Result], workload: str, variant: str) -> Result | None:
    return next((each for each in results if (each.workload, each.variant) == (workload, variant)), None)

"""Verdicts on the targets of `make bench`."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bench.drain_variants import VARIANTS as DRAINS  # type: ignore[import-not-found]
from bench.ledger_cost import WAYS  # type: ignore[import-not-found]
from bench.measure_merge import IN_SMALL  # type: ignore[import-not-found]
from bench.merge_variants import VARIANTS as MERGERS  # type: ignore[import-not-found]
from bench.results import Lap, Result, summary  # type: ignore[import-not-found]
from bench.targets import Outcome, Target, outcomes, verdict  # type: ignore[import-not-found]
from bench.workloads import (  # type: ignore[import-not-found]
    DECODE,
    DRAIN,
    LEDGER,
    MEMORY,
    MERGES,
    TABLES,
    UDF,
    chosen,
)

FASTER = Target("a rate", "w", "ours", "baseline", "rate", floor=18, goal=25)
SMALLER = Target("a memory", "w", "ours", "baseline", "memory", floor=1.2, goal=1)


def result(workload: str, variant: str, *, wall: float = 1.0, rss: int = 100) -> Result:
    return summary(
        [Lap(records=1000, wall=wall, cpu=wall)],
        part="udf",
        workload=workload,
        variant=variant,
        bytes_per_record=1.0,
        rss=rss,
    )


def outcome_of(found: Sequence[Result], workload: str, against: str) -> Outcome:
    (one,) = (
        each for each in outcomes(found) if (each.target.workload, each.target.against) == (workload, against)
    )
    return one


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [(25.0, "goal met"), (24.9, "floor met"), (18.0, "floor met"), (17.9, "not met")],
)
def test_a_rate_has_to_reach_its_bound(ratio, expected):
    assert verdict(FASTER, ratio) == expected


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [(1.0, "goal met"), (1.1, "floor met"), (1.2, "floor met"), (1.21, "not met")],
)
def test_a_memory_has_to_stay_below_its_bound(ratio, expected):
    assert verdict(SMALLER, ratio) == expected


def test_a_rate_is_ours_over_the_other():
    found = [result("udf_envelope", "ours", wall=1), result("udf_envelope", "baseline", wall=20)]

    assert outcome_of(found, "udf_envelope", "baseline").ratio == 20.0


def test_a_slowdown_is_the_clean_run_over_ours():
    found = [result("udf_corrupt", "ours", wall=3), result("udf_corrupt", "ours_clean", wall=2)]

    assert outcome_of(found, "udf_corrupt", "ours_clean").ratio == 1.5


def test_a_memory_is_ours_over_the_other():
    found = [result("udf_memory", "ours", rss=90), result("udf_memory", "baseline", rss=180)]

    assert outcome_of(found, "udf_memory", "baseline").ratio == 0.5


def test_what_a_step_costs_more_is_told_in_milliseconds():
    found = [result(LEDGER, "ours", wall=2.0), result(LEDGER, "plain", wall=1.0)]

    outcome = outcome_of(found, LEDGER, "plain")
    assert (outcome.ratio, outcome.target.unit, outcome.verdict) == (1000.0, " ms", "not met")


def test_what_a_table_of_many_costs_is_told_in_milliseconds():
    found = [result("tables_news", "ours", wall=10.0)]

    outcome = outcome_of(found, "tables_news", "ours")
    assert (outcome.ratio, outcome.target.unit, outcome.verdict) == (100.0, " ms", "floor met")


def test_a_target_whose_variants_did_not_run_is_not_measured():
    assert {each.verdict for each in outcomes([])} == {"not measured"}


def test_every_target_names_variants_that_are_measured():
    measured = {(each.name, name) for each in (*UDF, *DECODE) for name in each.copies}
    measured |= {(MEMORY, "ours"), (MEMORY, "baseline")}
    measured |= {(DRAIN, name) for name in DRAINS} | {(LEDGER, name) for name in WAYS}
    measured |= {(name, "ours") for name in TABLES}
    measured |= {(each.name, name) for each in MERGES for name in (*MERGERS, IN_SMALL)}
    named = {
        (each.target.workload, name)
        for each in outcomes([])
        for name in (each.target.variant, each.target.against)
    }

    assert named - measured == set()


def test_a_part_is_all_its_workloads():
    assert chosen("memory") == ["udf_memory"]
    assert chosen("decode")[0] == "decode_envelope"
    assert chosen("udf_wide") == ["udf_wide"]
    assert chosen("nothing") == []
    assert chosen("merge_recent_5k_in_2m") == ["merge_recent_5k_in_2m"]
    assert len(chosen(None)) == len(UDF) + len(DECODE) + 3 + len(TABLES) + len(MERGES)

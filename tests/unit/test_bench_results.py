"""The arithmetic of `make bench`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bench.results import Lap, Result, summary, with_ratios  # type: ignore[import-not-found]


def result(variant: str = "ours", workload: str = "w", *, walls: Sequence[float] = (1.0, 2.0, 4.0)) -> Result:
    laps = [Lap(records=1000, wall=wall, cpu=wall / 2) for wall in walls]
    return summary(laps, part="udf", workload=workload, variant=variant, bytes_per_record=2000.0, rss=7)


def test_a_summary_has_the_median_and_the_extremes_of_the_rates():
    found = result()

    assert (found.min_rps, found.median_rps, found.max_rps) == (250, 500, 1000)
    assert (found.records, found.repetitions, found.peak_rss_mb) == (1000, 3, 7)


def test_a_summary_tells_bytes_and_cpu_time_of_the_median():
    found = result()

    assert found.median_mb_per_s == 1.0
    assert found.cpu_s_per_million == 1000.0


def test_a_variant_is_compared_with_the_baseline_of_its_own_workload():
    found = with_ratios(
        [
            result("baseline", walls=(8.0,)),
            result(walls=(2.0,)),
            result("baseline", "other", walls=(2.0,)),
            result("ours", "other", walls=(1.0,)),
        ]
    )

    assert [each.ratio_to_baseline for each in found] == [1.0, 4.0, 1.0, 2.0]
    assert [each.cpu_ratio_to_baseline for each in found] == [1.0, 4.0, 1.0, 2.0]


def test_without_a_baseline_there_is_no_ratio():
    (found,) = with_ratios([result()])

    assert found.ratio_to_baseline is None


def test_only_ours_is_compared_with_ours_on_clean_records():
    found = with_ratios(
        [result("baseline", walls=(9.0,)), result(walls=(3.0,)), result("ours_clean", walls=(2.0,))]
    )

    assert [each.ratio_to_clean for each in found] == [None, 1.502, None]


def test_growth_leaves_the_micro_batch_that_warms_up_aside():
    assert replace(result(), rss_mb_by_micro_batch=(100, 200, 190, 220)).growth == 1.1


def test_without_micro_batches_nothing_is_said_of_growth():
    assert result().growth is None

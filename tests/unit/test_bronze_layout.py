"""How the records of a drain are shared out among tasks."""

from __future__ import annotations

import pytest

from cdc_lakehouse.bronze.layout import Layout, lay_out


@pytest.mark.parametrize(
    ("backlogs", "cores", "expected"),
    [
        pytest.param([1_000_000], 2, Layout(125_000, None), id="one partition is read by all cores"),
        pytest.param(
            [1_000_000, *[100] * 50], 2, Layout(125_000, None), id="one huge beside many small ones"
        ),
        pytest.param(
            [1_000_000] * 8, 64, Layout(25_000, None), id="no piece is smaller than a task is worth"
        ),
        pytest.param([60_000, 40_000], 2, Layout(25_000, None), id="a backlog below one batch"),
        pytest.param([5] * 50, 2, Layout(25_000, 1), id="many small partitions are read together"),
        pytest.param([5_000, 5_000, 5_000], 2, Layout(25_000, 2), id="by as many tasks as they are worth"),
        pytest.param([500], 2, Layout(25_000, None), id="a single partition needs no putting together"),
        pytest.param([500, 0, 0], 2, Layout(25_000, None), id="partitions without news do not count"),
        pytest.param([], 2, Layout(25_000, None), id="nothing to read"),
    ],
)
def test_the_layout_follows_the_backlog(backlogs, cores, expected):
    assert lay_out(backlogs, cores=cores, per_batch=500_000) == expected


def test_a_piece_is_counted_by_the_batch_and_not_by_the_whole_backlog():
    assert lay_out([10**9], cores=4, per_batch=400_000).records_per_task == 50_000

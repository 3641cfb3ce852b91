"""Curves of merges: seconds of a batch by its size, a line for each way and size of table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from bench.results import Result  # type: ignore[import-not-found]
from bench.workloads import MERGES, Merge  # type: ignore[import-not-found]

_COLOURS = {"ours": "#1f6f8b", "plain": "#b0b7bd"}
_STYLES = ("--", "-")
"""Of the small table, of the large one."""


def draw_merges(results: Sequence[Result], path: Path) -> None:
    """One panel for uniform keys, one for recent ones."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    for number, spread in enumerate(("uniform", "recent"), start=1):
        axes = figure.add_subplot(1, 2, number)
        for variant, colour in _COLOURS.items():
            for rows, style in zip(sorted({each.rows for each in MERGES}), _STYLES, strict=True):
                points = _points(
                    results, [e for e in MERGES if (e.spread, e.rows) == (spread, rows)], variant
                )
                if points:
                    label = f"{variant}, {rows // 1_000_000} M rows"
                    axes.plot(*zip(*points, strict=True), style, color=colour, marker="o", label=label)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(f"{spread} keys", loc="left")
        axes.set_xlabel("changes in a batch")
        axes.set_ylabel("seconds, median")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    figure.savefig(path, dpi=120)


def _points(results: Sequence[Result], merges: Sequence[Merge], variant: str) -> list[tuple[int, float]]:
    rates = {each.workload: each.median_rps for each in results if each.variant == variant}
    return [(each.changes, each.changes / rates[each.name]) for each in merges if rates.get(each.name)]

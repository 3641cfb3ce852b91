"""A chart of the full envelope: records per second of each variant that decodes or could, with its range."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.results import BASELINES, Result  # type: ignore[import-not-found]

_TITLES = {
    "udf_envelope": "Avro UDF in Spark local[2], key and value, noop sink",
    "decode_envelope": "Decoding alone, one core",
    "drain_bronze": "From Kafka to a commit in bronze Delta, local[2]",
}
_OURS, _OTHER = "#1f6f8b", "#b0b7bd"


def draw(results: Sequence[Result], path: Path) -> None:
    """One panel per workload of the envelope that was measured, else one per workload."""
    names = list(dict.fromkeys(each.workload for each in results))
    chosen = [name for name in names if name in _TITLES] or names
    figure = Figure(figsize=(10, 1.2 + 2.8 * len(chosen)), layout="constrained")
    for number, name in enumerate(chosen, start=1):
        axes = figure.add_subplot(len(chosen), 1, number)
        found = [each for each in results if each.workload == name and each.variant != "scan"]
        _panel(axes, found, _TITLES.get(name, name))
    figure.savefig(path, dpi=120)


def _panel(axes: Axes, found: Sequence[Result], title: str) -> None:
    found = sorted(found, key=lambda each: each.median_rps)
    rates = [each.median_rps for each in found]
    ranges = [
        [each.median_rps - each.min_rps for each in found],
        [each.max_rps - each.median_rps for each in found],
    ]
    colours = [_OURS if each.variant.startswith("ours") else _OTHER for each in found]
    bars = axes.barh([each.variant for each in found], rates, xerr=ranges, color=colours, ecolor="#444444")
    axes.bar_label(bars, labels=[_label(each) for each in found], padding=6, fontsize=9)
    axes.set_title(title, loc="left")
    axes.set_xlabel("records per second: median, min to max")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:,.0f} k")
    axes.margins(x=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _label(each: Result) -> str:
    ratio = (
        "" if each.ratio_to_baseline is None or each.variant in BASELINES else f" ({each.ratio_to_baseline}x)"
    )
    return f"{each.median_rps:,}{ratio}"

"""Results as JSON for machines, and as tables and a chart for people."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench import decode_variants, drain_variants, spark_variants  # type: ignore[import-not-found]
from bench.results import Result  # type: ignore[import-not-found]
from bench.targets import Outcome, outcomes  # type: ignore[import-not-found]

FOLDER = Path(__file__).parent / "results"
_MERGES = "latest_merge.png"
_FILES = ("latest.json", "latest.md", "latest.png", _MERGES)


@dataclass(frozen=True, slots=True)
class Run:
    environment: dict[str, Any]
    results: Sequence[Result]
    skipped: Sequence[str]
    complete: bool
    """Whether it came to its end."""


def write(run: Run, *, reference: bool = False, folder: Path = FOLDER) -> Path:
    """`latest.*`, and `reference/` with the same; a second call replaces them."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "complete": run.complete,
        "environment": run.environment,
        "targets": [asdict(each) for each in outcomes(run.results)],
        "skipped": list(run.skipped),
        "results": [asdict(each) | {"growth": each.growth} for each in run.results],
    }
    (folder / "latest.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    (folder / "latest.md").write_text(markdown(run), encoding="utf-8")
    _draw(run.results, folder / "latest.png")
    if reference:
        (folder / "reference").mkdir(exist_ok=True)
        for name in _FILES:
            shutil.copyfile(folder / name, folder / "reference" / name.replace("latest", "reference"))
    return folder


def _draw(results: Sequence[Result], path: Path) -> None:
    """An older chart would belong to another run."""
    path.unlink(missing_ok=True)
    if find_spec("matplotlib") is None:
        print("no chart: matplotlib is not installed (make setup)", file=sys.stderr)
        return
    from bench.chart import draw  # type: ignore[import-not-found]

    draw([each for each in results if each.part != "merge"], path)
    merges = path.with_name(_MERGES)
    merges.unlink(missing_ok=True)
    if any(each.part == "merge" for each in results):
        from bench.merge_chart import draw_merges  # type: ignore[import-not-found]

        draw_merges(results, merges)


def markdown(run: Run) -> str:
    return "\n".join(
        [
            *_head(run.environment),
            "",
            *_targets(outcomes(run.results)),
            *(
                line
                for part in ("udf", "decode", "drain", "tables", "merge")
                for line in _part(part, run.results)
            ),
            *(["", "Not measured:", "", *(f"- {each}" for each in run.skipped)] if run.skipped else []),
            "",
        ]
    )


def _head(about: dict[str, Any]) -> list[str]:
    packages = ", ".join(f"{name} {number}" for name, number in about["packages"].items())
    load = " ".join(map(str, about["load_before"]))
    return [
        f"Measured {about['measured_at']}, commit {about['commit']}, on {about['cores']} cores of "
        f"{about['cpu']}, {about['memory_gb']} GB; load before {load}.",
        f"Python {about['python']}, {packages}; batches of {about['batch']}, seed {about['seed']}.",
    ]


def _targets(found: Sequence[Outcome]) -> list[str]:
    lines = [
        "| target | workload | against | floor | goal | measured | |",
        "|---|---|---|---:|---:|---:|---|",
    ]
    for each in found:
        target = each.target
        least = "" if target.more_is_better else "<= "
        ratio = "-" if each.ratio is None else f"{each.ratio}{target.unit}"
        against = "-" if target.against == target.variant else f"`{target.against}`"
        floor, goal = (f"{least}{bound}{target.unit}" for bound in (target.floor, target.goal))
        lines.append(
            f"| {target.what} | `{target.workload}` | {against} | {floor} | {goal} | {ratio} "
            f"| {each.verdict} |"
        )
    return lines


def _part(part: str, results: Sequence[Result]) -> list[str]:
    found = [each for each in results if each.part == part]
    if not found:
        return []
    return [
        "",
        f"## {_TITLES[part]}",
        "",
        "| workload | variant | records/s, median | min .. max | MB/s | CPU s per million | worker RSS MB "
        "| JVM RSS MB | ratio | CPU ratio | slower than clean |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
        *map(_row, found),
        *(line for each in found if each.growth for line in _memory(each)),
        "",
        *(f"- `{name}`: {does}" for name, does in _told(part).items()),
        *_NOTES[part],
    ]


def _told(part: str) -> dict[str, str]:
    """Variant -> what it does."""
    if part in ("tables", "merge"):
        return {}
    known = {"udf": spark_variants, "decode": decode_variants, "drain": drain_variants}
    told = {name: variant.does for name, variant in known[part].VARIANTS.items()}
    return told if part == "drain" else {**told, "ours_clean": _CLEAN}


def _row(each: Result) -> str:
    return (
        f"| {each.workload} | {each.variant} | {each.median_rps:,} | {each.min_rps:,} .. {each.max_rps:,} "
        f"| {each.median_mb_per_s or '-'} | {each.cpu_s_per_million} | {each.peak_rss_mb or '-'} "
        f"| {each.jvm_peak_rss_mb or '-'} | {_times(each.ratio_to_baseline)} "
        f"| {_times(each.cpu_ratio_to_baseline)} | {_times(each.ratio_to_clean)} |"
    )


def _memory(each: Result) -> list[str]:
    sizes = ", ".join(map(str, each.rss_mb_by_micro_batch))
    return [
        "",
        f"`{each.workload}` {each.variant}, largest worker after each {each.records:,} records: {sizes} MB; "
        f"the last is {each.growth}x the second.",
    ]


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio}x"


_CLEAN = "`ours` on the same events of one schema id and without damage"
_TITLES = {
    "udf": "Inside Spark, key and value, noop sink",
    "decode": "Decoding alone, one core",
    "drain": "From Kafka to a commit in bronze",
    "tables": "A hundred small tables in one application",
    "merge": "Changes merged into a large table",
}
_NOTES = {
    "merge": [
        "- `ours`: all that `silver_merge` does with the table, from the look to the commit",
        "- `plain`: the newest event of each key by `row_number`, then MERGE with update, delete and insert; "
        "no deletion vectors, Spark's 200 and Delta's 50 partitions",
        "- tables of ten columns in files of 1.5 million rows; of ten events eight update a row, one creates "
        "one, one deletes one; `recent`: of the newest keys, ten times as many as there are changes",
        "- records/s are changes by the clock; `ours_in_1m`: as many changes in the table of a million rows",
    ],
    "tables": [
        "- a real broker, a hundred topics of two partitions, 500 records for each table before `tables_new` "
        "and before `tables_news`; records/s are those of all tables together, 50,000 in every round",
        "- seconds without the start of Spark, CPU of the whole process with it and without the broker's",
    ],
    "drain": [
        "- a real broker, one million records in two partitions, micro-batches of half a million, a new "
        "table in every repetition; CPU without the broker's",
        "- all of them read Kafka with the product's settings of Spark's source (`bronze.source_settings`)",
        "- `drain_ledger`: batches of a thousand records one by one in a warm Spark, `plain` by the same UDF "
        "and Spark's append",
    ],
    "udf": [
        "- CPU: of the JVM and all Python workers",
        "- ratio: rate against the rate of `baseline`; CPU ratio: the same of CPU time per record",
        "- headers are null, as Kafka sends them; whatever goes through `mapInArrow`, the product too, makes "
        "them an empty list first, as a null list is dear on its way to Python",
        "- worker RSS: peak of the largest worker; each variant of each workload has a JVM and workers "
        "of its own, and the laps of all variants go in turns",
    ],
    "decode": [
        "- ratio: rate against `confluent`; where other work disturbs, the ratio of CPU time is steadier",
        "- RSS: peak of the process, which holds the input and has loaded every variant",
    ],
}

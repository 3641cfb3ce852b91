"""Results as JSON for machines and as a table for people."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.measure import Result  # type: ignore[import-not-found]
from bench.variants import VARIANTS  # type: ignore[import-not-found]
from bench.workloads import BATCH, SEED  # type: ignore[import-not-found]

FOLDER = Path(__file__).parent / "results"
BASELINE = "confluent"
_PACKAGES = ("pyarrow", "numpy", "fastavro", "confluent-kafka")


def environment() -> dict[str, Any]:
    """What somebody must know to compare these numbers with theirs."""
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in _PACKAGES},
        "seed": SEED,
        "batch": BATCH,
        "pinned_to_one_core": True,
    }


def write(results: list[Result], about: dict[str, Any], *, folder: Path = FOLDER) -> Path:
    """`latest.json` and `latest.md`; a second call replaces both."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {"environment": about, "results": [asdict(result) for result in results]}
    (folder / "latest.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    (folder / "latest.md").write_text(markdown(results, about), encoding="utf-8")
    return folder / "latest.json"


def markdown(results: list[Result], about: dict[str, Any]) -> str:
    packages = ", ".join(f"{name} {number}" for name, number in about["packages"].items())
    lines = [
        f"Decoding on one core: {about['cpu']}, Python {about['python']}, {packages}.",
        f"Batches of {about['batch']}, seed {about['seed']}, commit {about['commit']}; "
        f"{about['cores']} cores, load {about['load_before']} before.",
        "",
        "| workload | variant | records/s, median | min .. max | MB/s | CPU s per million "
        "| RSS MB | ratio | CPU ratio |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    baseline = {each.workload: each for each in results if each.variant == BASELINE}
    for each in results:
        usual = baseline[each.workload]
        ratio, cpu_ratio = (
            each.median_rps / usual.median_rps,
            usual.cpu_s_per_million / each.cpu_s_per_million,
        )
        lines.append(
            f"| {each.workload} | {each.variant} | {each.median_rps:,} "
            f"| {each.min_rps:,} .. {each.max_rps:,} "
            f"| {each.median_mb_per_s} | {each.cpu_s_per_million} "
            f"| {each.peak_rss_mb} | {ratio:.2f}x | {cpu_ratio:.2f}x |"
        )
    lines += ["", *(f"- `{variant.name}`: {variant.does}" for variant in VARIANTS)]
    lines += [
        f"- ratio: against `{BASELINE}`; on a machine that others use too, the one of CPU time is steadier",
        "- RSS: peak of a process that has loaded every variant and holds the input",
    ]
    return "\n".join([*lines, ""])


def _commit() -> str:
    answer = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return answer.stdout.strip() or "unknown"


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()

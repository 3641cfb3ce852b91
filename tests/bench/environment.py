"""Where a run was made: what somebody must know to compare its numbers with theirs."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.spark_session import BATCH, SETTINGS  # type: ignore[import-not-found]
from bench.streams import SEED  # type: ignore[import-not-found]

_PACKAGES = ("pyspark", "pyarrow", "numpy", "pandas", "fastavro", "confluent-kafka")


def environment() -> dict[str, Any]:
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _answer("git", "describe", "--always", "--dirty"),
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9, 1),
        "load_before": [round(each, 2) for each in os.getloadavg()],
        "kernel": platform.release(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in _PACKAGES},
        "seed": SEED,
        "batch": BATCH,
        "spark_settings": SETTINGS,
    }


def _answer(*command: str) -> str:
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent)
    return answer.stdout.strip() or "unknown"


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()

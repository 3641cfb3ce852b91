"""How a computation inside Spark is timed."""

from __future__ import annotations

import time

from pyspark.sql import DataFrame

from bench.processes import cpu_seconds, tree_of  # type: ignore[import-not-found]
from bench.results import Lap  # type: ignore[import-not-found]


def timed(jvm: int, rows: DataFrame, records: int) -> Lap:
    """Compute every value of every row and throw it away."""
    before, began = tree_of(jvm), time.perf_counter()
    rows.write.format("noop").mode("overwrite").save()
    wall = time.perf_counter() - began
    return Lap(records, wall, cpu_seconds(before, tree_of(jvm)))

"""Before its time counts, a variant must give in Spark what fastavro reads, row by row."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from bench.comparing import undecodable  # type: ignore[import-not-found]
from bench.expected import WrongRowError  # type: ignore[import-not-found]
from bench.spark_variants import Variant  # type: ignore[import-not-found]
from bench.streams import Stream  # type: ignore[import-not-found]

VERIFIED = 5_000


def verify(variant: Variant, stream: Stream, block: DataFrame, *, size: int, folder: Path) -> int:
    """How many of the records were undecodable; raises for the first wrong one.

    All `size` records of the block are looked at where some are damaged, else the first ones.
    """
    count = size if stream.corrupt else min(VERIFIED, size)
    path = str(folder / "verified")
    variant.plan(stream, block.where(block["offset"] < count)).write.mode("overwrite").parquet(path)
    found = pq.read_table(path).sort_by("offset").to_pylist(maps_as_pydicts="strict")
    if [row["offset"] for row in found] != list(range(count)):
        raise WrongRowError(f"{variant.name}: {len(found)} rows for {count} records, or others")
    refused: int = undecodable(variant.name, variant.gives, stream, found, size)
    return refused

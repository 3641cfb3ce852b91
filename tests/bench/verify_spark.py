"""Before its time counts, a variant must give in Spark what fastavro reads, row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from bench.expected import (  # type: ignore[import-not-found]
    WrongRowError,
    bronze,
    envelopes,
    essence,
    few,
    plain,
)
from bench.spark_variants import Variant  # type: ignore[import-not-found]
from bench.streams import Stream  # type: ignore[import-not-found]

VERIFIED = 5_000
Row = dict[str, Any]
_FEW = ("key", "op", "after", "source")
_SIDES = ("key", "value")


def verify(variant: Variant, stream: Stream, block: DataFrame, *, size: int, folder: Path) -> int:
    """How many of the records were undecodable; raises for the first wrong one.

    All `size` records of the block are looked at where some are damaged, else the first ones.
    """
    count = size if stream.corrupt else min(VERIFIED, size)
    path = str(folder / "verified")
    variant.plan(stream, block.where(block["offset"] < count)).write.mode("overwrite").parquet(path)
    found = pq.read_table(path).sort_by("offset").to_pylist()
    if [row["offset"] for row in found] != list(range(count)):
        raise WrongRowError(f"{variant.name}: {len(found)} rows for {count} records, or others")
    sent, clean = stream.records(count), stream.clean().records(count)
    return sum(_checked(variant, stream, *each) for each in zip(found, sent, clean, strict=True))


def _checked(variant: Variant, stream: Stream, row: Row, sent: Any, clean: Any) -> bool:
    """A damaged record may be refused, or read as the other bytes that it has now; a clean one may not."""
    if sent != clean and row.get("decode_error") is not None:
        return True
    (envelope,) = envelopes(stream, [sent])
    expected, given = _PAIRS[variant.gives](stream, envelope, row, sent)
    if given != expected:
        raise WrongRowError(
            f"{variant.name}: {stream.name}: record {row['offset']} is {given}, by fastavro {expected}"
        )
    return False


_PAIRS: dict[str, Callable[[Stream, Row, Row, Sequence[bytes]], tuple[Any, Any]]] = {
    "envelope": lambda _stream, envelope, row, _sent: (envelope, plain({name: row[name] for name in _SIDES})),
    "bronze": lambda stream, envelope, row, _sent: (bronze(stream, envelope), essence(row)),
    "projected": lambda _stream, envelope, row, _sent: (few(envelope), {name: row[name] for name in _FEW}),
    "bytes": lambda _stream, _envelope, row, sent: (sent, (row["key"], row["value"])),
}

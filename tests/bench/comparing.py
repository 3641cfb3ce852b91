"""Whether what a variant gave is what fastavro reads, record by record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.expected import (  # type: ignore[import-not-found]
    Expected,
    WrongRowError,
    essence,
)
from bench.streams import Stream  # type: ignore[import-not-found]

Row = dict[str, Any]
Record = tuple[bytes, bytes]


def undecodable(who: str, gives: str, stream: Stream, rows: Sequence[Row], size: int) -> int:
    """How many of `size` records were refused; raises for the first wrong one.

    `rows` are those of the first records of the block of `size`.
    """
    sent = stream.records(size if stream.corrupt else len(rows))[: len(rows)]
    clean = stream.clean().records(len(rows))
    expected, refused = Expected(stream), 0
    for number, (row, record, undamaged) in enumerate(zip(rows, sent, clean, strict=True)):
        if record != undamaged and row.get("decode_error") is not None:
            # A damaged record may be refused, or read as the other bytes that it has now.
            refused += 1
            continue
        right, given = _pair(gives, expected, row, record)
        if given != right:
            raise WrongRowError(f"{who}, {stream.name}: record {number} is {given}, by fastavro {right}")
    return refused


def _pair(gives: str, expected: Expected, row: Row, record: Record) -> tuple[Any, Any]:
    match gives:
        case "bronze":
            return expected.bronze(record), essence(row)
        case "kept":
            return expected.kept(record), essence(row)
        case "bytes":
            return record, (row["key"], row["value"])
        case _:
            return expected.envelope(record), {name: row[name] for name in ("key", "value")}

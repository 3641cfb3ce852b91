"""Whether what a variant gave is what fastavro reads, record by record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.expected import (  # type: ignore[import-not-found]
    WrongRowError,
    bronze,
    envelopes,
    essence,
    few,
    plain,
)
from bench.streams import Stream  # type: ignore[import-not-found]

Row = dict[str, Any]
Record = tuple[bytes, bytes]
_FEW = ("key", "op", "after", "source")


def undecodable(who: str, gives: str, stream: Stream, rows: Sequence[Row], size: int) -> int:
    """How many of `size` records were refused; raises for the first wrong one.

    `rows` are those of the first records of the block of `size`.
    """
    sent = stream.records(size if stream.corrupt else len(rows))[: len(rows)]
    clean = stream.clean().records(len(rows))
    refused = 0
    for number, (row, record, undamaged) in enumerate(zip(rows, sent, clean, strict=True)):
        if record != undamaged and row.get("decode_error") is not None:
            # A damaged record may be refused, or read as the other bytes that it has now.
            refused += 1
            continue
        expected, given = _pair(gives, stream, row, record)
        if given != expected:
            raise WrongRowError(f"{who}, {stream.name}: record {number} is {given}, by fastavro {expected}")
    return refused


def _pair(gives: str, stream: Stream, row: Row, record: Record) -> tuple[Any, Any]:
    if gives == "bytes":
        return record, (row["key"], row["value"])
    (envelope,) = envelopes(stream, [record])
    match gives:
        case "bronze":
            return bronze(stream, envelope), essence(row)
        case "projected":
            return few(envelope), {name: row[name] for name in _FEW}
        case _:
            return envelope, plain({name: row[name] for name in ("key", "value")})

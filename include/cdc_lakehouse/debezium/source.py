"""The `source` block of an event: who sent it and where in the source's log it stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

_INT64 = range(-(2**63), 2**63)
_MICROS_PER = {"ts_us": 1, "ts_ms": 1000}

SOURCE_TYPE = pa.struct(
    [
        ("connector", pa.string()),
        ("version", pa.string()),
        ("name", pa.string()),
        ("snapshot", pa.string()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("db", pa.string()),
        ("schema", pa.string()),
        ("table", pa.string()),
        ("sequence", pa.string()),
        ("tx_id", pa.int64()),
        ("lsn", pa.int64()),
        ("file", pa.string()),
        ("pos", pa.int64()),
        ("row", pa.int64()),
        ("gtid", pa.string()),
    ]
)
TRANSACTION_TYPE = pa.struct(
    [("id", pa.string()), ("total_order", pa.int64()), ("data_collection_order", pa.int64())]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Names as in `SOURCE_TYPE`; what the connector did not send is None."""

    connector: str | None = None
    version: str | None = None
    name: str | None = None
    snapshot: str | None = None
    ts: int | None = None
    """Commit time in microseconds since 1970 UTC; for an incremental snapshot the time of reading."""
    db: str | None = None
    schema: str | None = None
    table: str | None = None
    sequence: str | None = None
    """PostgreSQL: JSON text of two log positions, kept as it came."""
    tx_id: int | None = None
    lsn: int | None = None
    file: str | None = None
    """MySQL: name of the binlog file; `pos` and `row` stand inside it."""
    pos: int | None = None
    row: int | None = None
    gtid: str | None = None


def source_of(block: Mapping[str, Any] | None) -> Source | None:
    """From the raw decoded block; a field of another kind than expected counts as not sent."""
    if block is None:
        return None
    text, number = _texts(block), _numbers(block)
    return Source(
        connector=text("connector"),
        version=text("version"),
        name=text("name"),
        snapshot=text("snapshot"),
        ts=_commit_time(block),
        db=text("db"),
        schema=text("schema"),
        table=text("table"),
        sequence=text("sequence"),
        tx_id=number("txId"),
        lsn=number("lsn"),
        file=text("file"),
        pos=number("pos"),
        row=number("row"),
        gtid=text("gtid"),
    )


def _commit_time(block: Mapping[str, Any]) -> int | None:
    number = _numbers(block)
    for name, factor in _MICROS_PER.items():
        value = number(name)
        if value is not None and value * factor in _INT64:
            return value * factor
    return None


def _texts(block: Mapping[str, Any]) -> Callable[[str], str | None]:
    def text(name: str) -> str | None:
        value = block.get(name)
        return value if isinstance(value, str) else None

    return text


def _numbers(block: Mapping[str, Any]) -> Callable[[str], int | None]:
    def number(name: str) -> int | None:
        value = block.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    return number

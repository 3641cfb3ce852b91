"""The history of a table as it was at an earlier quiet point."""

from __future__ import annotations

import pyarrow as pa

_ALL = 2**63


def versions_at(history: pa.Table, lsn: str) -> pa.Table:
    """Those that stood when the log had come to `lsn` and no transaction was open."""
    until = _number(lsn)
    begun = [_row(each) < until for each in history["_cdc_from"].to_pylist()]
    ended = [_ALL if each is None else _row(each) for each in history["_cdc_to"].to_pylist()]
    stood = [is_begun and end >= until for is_begun, end in zip(begun, ended, strict=True)]
    return history.filter(pa.array(stood, pa.bool_()))


def _row(place: dict[str, int]) -> int:
    """Where the event itself stands in the log; the commit before it may be long ago."""
    return place["row"]


def _number(lsn: str) -> int:
    high, low = lsn.split("/")
    return (int(high, 16) << 32) + int(low, 16)

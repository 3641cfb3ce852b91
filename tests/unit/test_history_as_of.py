"""A history as of an earlier quiet point, and events folded into the rows that they leave."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from history.appended import rows_alive, told_twice  # type: ignore[import-not-found]
from history.versions import versions_at  # type: ignore[import-not-found]

FIELDS = ("epoch", "phase", "commit", "streamed", "row", "order_in_tx", "kind")
PLACE = pa.struct([(name, pa.int64()) for name in FIELDS])
TIME = pa.timestamp("us", tz="UTC")
VERSIONS = pa.schema([("id", pa.int32()), ("_cdc_from_ts", TIME), ("_cdc_to_ts", TIME)])
EVENTS = pa.schema(
    [
        ("note", pa.string()),
        ("born", pa.int64()),
        ("_cdc_op", pa.string()),
        ("_cdc_position", PLACE),
        ("_cdc_tx_id", pa.int64()),
    ]
)


def place(row: int, *, commit: int = 1, kind: int = 1) -> dict[str, int]:
    return dict(zip(FIELDS, (0, 1, commit, 1, row, 0, kind), strict=True))


def history(*versions: tuple[int, int, int | None]) -> pa.Table:
    rows = [{"id": key, "_cdc_from_ts": begun, "_cdc_to_ts": ended} for key, begun, ended in versions]
    return pa.Table.from_pylist(rows, schema=VERSIONS)


def events(*told: tuple[str | None, int | None, str, dict[str, int], int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(EVENTS.names, each, strict=True)) for each in told], schema=EVENTS)


def notes(table: pa.Table) -> list[Any]:
    return list(rows_alive(table)["note"].to_pylist())


def test_a_version_stands_from_its_first_moment_to_the_first_behind_it():
    found = versions_at(history((1, 10, 20), (2, 16, None), (3, 17, None), (4, 5, 16), (5, 16, 16)), 16)

    assert found["id"].to_pylist() == [1, 2]


def test_a_row_is_what_its_newest_event_says():
    told = events(("new", 7, "u", place(20), 2), ("old", 7, "c", place(10), 1))

    assert notes(told) == ["new"]


def test_a_deleted_row_is_none():
    assert notes(events(("a", 7, "c", place(10), 1), ("a", 7, "d", place(20), 2))) == []


def test_a_truncate_takes_what_stands_before_it():
    told = events(("b", 8, "c", place(30), 3), (None, None, "t", place(20), 2), ("a", 7, "c", place(10), 1))

    assert notes(told) == ["b"]


def test_a_transaction_has_one_commit_before_it():
    told = events(("first", 7, "c", place(10, commit=5), 1), ("second", 7, "u", place(11, commit=0), 1))

    assert notes(told) == ["second"]


def test_an_event_that_stands_twice_is_told():
    told = events(("a", 7, "c", place(10), 1), ("a", 7, "c", place(10), 1))

    assert told_twice(told) == ["c of row 7 at (0, 1, 1, 1, 10, 0, 1)"]

"""Rows of bronze and silver in the words of a case file, so that they compare with its literals."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from cases.case_file import Case, Row  # type: ignore[import-not-found]
from cases.encoding import COMMIT_MILLIS, writers  # type: ignore[import-not-found]

POSITION = ("phase", "commit", "streamed", "row", "order_in_tx", "kind")
SYSTEM = ("_cdc_op", "_cdc_position", "_cdc_tx_id")
RARE = ("_cdc_incomplete", "_cdc_deleted", "_cdc_unavailable", "_cdc_coordinate")


def expected_bronze(case: Case, *, first_id: int = 10, tag: bool = False) -> list[Row]:
    """The literal rows; `sent` becomes the bytes that `writers` with the same arguments send."""
    by_batch = writers(case, first_id=first_id, tag=tag)
    return [
        {
            **row.model_dump(),
            "position": None if row.position is None else list(row.position),
            "unavailable": None if row.unavailable is None else list(row.unavailable),
            "headers": None if row.headers is None else list(row.headers),
            "raw_key": _sent(row.raw_key, by_batch[event.batch].record(event).key),
            "raw_value": _sent(row.raw_value, by_batch[event.batch].record(event).value),
        }
        for row, event in zip(case.bronze, case.events, strict=True)
    ]


def in_coordinate_order(rows: list[Row]) -> list[Row]:
    """By partition, then by offset; a case tells them in the order in which drains read them."""
    return sorted(rows, key=lambda row: [int(number) for number in row["at"].split("@")])


def told_bronze(case: Case, row: Row) -> Row:
    """A row of the decoder or of the table."""
    position, source, error = row["position"], row["source"] or {}, row["decode_error"] or {}
    headers = row["headers"]
    return {
        "at": f"{row['partition']}@{row['offset']}",
        "op": row["op"],
        "position": None if position is None else [position[name] for name in POSITION],
        "tx": source.get("tx_id"),
        "key": _own(row.get("key"), case.table.key),
        "before": _own(row["before"], case.all_columns),
        "after": _own(row["after"], case.all_columns),
        "unavailable": row["unavailable"],
        "headers": None if headers is None else [header["key"] for header in headers],
        "error": error.get("code"),
        "raw_key": _hex(row["raw_key"]),
        "raw_value": _hex(row["raw_value"]),
    }


def told_silver(case: Case, row: Row) -> Row:
    position, at = list(row["_cdc_position"].values()), row.get("_cdc_coordinate")
    coordinate = None if at is None else f"{at['partition']}@{at['offset']}"
    return _told({**row, "_cdc_position": position, "_cdc_coordinate": coordinate}, case)


def is_inside(case: Case, row: Row) -> bool:
    """Whether a row satisfies the case's filter, as SQLite reads it."""
    if not case.table.filter:
        return True
    values = {name: row.get(name) for name in case.all_columns}
    named = ", ".join(f':{name} as "{name}"' for name in values)
    with closing(sqlite3.connect(":memory:")) as database:
        found = database.execute(f"select {case.table.filter} from (select {named})", values)
        return bool(found.fetchone()[0])


def specified_silver(case: Case, row: Row) -> Row:
    """A row of the oracle, whose positions are plain lists."""
    return _told(row, case)


def _told(row: Row, case: Case) -> Row:
    own = {name: _plain(row.get(name)) for name in case.silver_columns}
    rare = {name: row[name] for name in RARE if row.get(name)}
    return {**own, **{name: row[name] for name in SYSTEM}, **rare}


def told_history(case: Case, row: Row) -> Row:
    """A row of the table or of the oracle, whose places are plain lists."""
    own = {name: _plain(row.get(name)) for name in case.silver_columns}
    places = {name: _place(row[name]) for name in ("_cdc_from", "_cdc_to")}
    rare = {"_cdc_incomplete": row["_cdc_incomplete"]} if row["_cdc_incomplete"] else {}
    times = [millis_of(row[name]) for name in ("_cdc_from_ts", "_cdc_to_ts")]
    ts = {"ts": times} if any(times) else {}
    return {**own, "_cdc_op": row["_cdc_op"], **places, **rare, **ts}


def millis_of(time: datetime | int | None) -> int | None:
    """Behind the moment that all cases share."""
    if not isinstance(time, datetime):
        return time
    millis: int = round(1000 * time.replace(tzinfo=time.tzinfo or UTC).timestamp()) - COMMIT_MILLIS
    return millis


def in_version_order(case: Case, rows: list[Row]) -> list[Row]:
    """By key, then by place."""
    return in_key_order(case, sorted(rows, key=lambda row: row["_cdc_from"]))


def _place(place: Any) -> list[int] | None:
    return list(place.values()) if isinstance(place, dict) else place


def in_key_order(case: Case, rows: list[Row]) -> list[Row]:
    """By key, null first; rows of events by position, and by coordinate where it is the same."""
    if case.table.mode == "append":
        return sorted(rows, key=lambda row: (row["_cdc_position"], row.get("_cdc_coordinate", ""), str(row)))
    topic = [case.table.topic_column] if case.table.topic_column else []
    names = [*case.table.identity, *topic]
    return sorted(rows, key=lambda row: [(row[name] is not None, row[name]) for name in names])


def _own(struct: Row | None, columns: tuple[str, ...]) -> Row | None:
    return None if struct is None else {name: _plain(struct[name]) for name in columns}


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Decimal) else value


def _hex(data: bytes | None) -> str | None:
    return None if data is None else bytes(data).hex()


def _sent(literal: str | None, data: bytes | None) -> str | None:
    return _hex(data) if literal == "sent" else literal

"""The specification of the fold: what silver holds after a batch of bronze rows (`cdc-semantics` §1, §2, §9).

Plain Python over plain values; Spark says the same in its own words, and `tests/cases` hold both to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Row = dict[str, Any]
Silver = dict[tuple[Any, ...], Row]
FIRST_EPOCH = 0


class Refused(Exception):  # noqa: N818 - an outcome, named as the cases name it
    """Silver stays as it was."""

    def __init__(self, code: str, *, kind: str | None = None, at: str | None = None) -> None:
        super().__init__(code, kind, at)
        self.code, self.kind, self.at = code, kind, at


ROW_OPS = ("c", "r", "u", "d")
IGNORED_OPS = (None, "m")  # a tombstone follows its delete, a logical message is no row

UNSUPPORTED: dict[str, Callable[[Row], bool]] = {
    "truncate": lambda row: row["op"] == "t",
    "unavailable (TOAST) value": lambda row: row["op"] in ROW_OPS and bool(row["unavailable"]),
    "key change": lambda row: (
        row["op"] in ROW_OPS and bool({"__debezium.newkey", "__debezium.oldkey"} & set(row["headers"] or ()))
    ),
    "event without a key": lambda row: row["op"] in ROW_OPS and row["key"] is None,
    "event without a position": lambda row: row["op"] in ROW_OPS and row["position"] is None,
    "unknown operation": lambda row: row["op"] not in (*ROW_OPS, *IGNORED_OPS, "t"),
}


def merged(silver: Silver, batch: Iterable[Row]) -> Silver:
    """Silver after `batch`; raises `Refused` for what this release cannot apply."""
    rows = list(batch)
    decoded = [row for row in rows if row["error"] is None]
    refuse_unsupported(decoded)
    if any(row["error"] == "incompatible_schema" for row in rows):
        raise Refused("SCHEMA_MISFIT")
    events = [row for row in decoded if row["op"] not in IGNORED_OPS]
    after = dict(silver)
    for key in {tuple(row["key"].values()) for row in events}:
        newest = max((row for row in events if tuple(row["key"].values()) == key), key=position)
        if key in after and position(newest) <= tuple(after[key]["_cdc_position"]):
            continue  # rule 2.4: an equal position is the same event
        if newest["op"] == "d":
            after.pop(key, None)
        else:
            after[key] = silver_row(newest)
    return after


def position(row: Row) -> tuple[int, ...]:
    """Rule 2.1, compared from left to right; the Kafka offset is not part of it."""
    return FIRST_EPOCH, *row["position"]


def silver_row(row: Row) -> Row:
    system = {"_cdc_op": row["op"], "_cdc_position": list(position(row)), "_cdc_tx_id": row["tx"]}
    return {**row["after"], **row["key"], **system}


def refuse_unsupported(rows: list[Row]) -> None:
    for kind, is_met in UNSUPPORTED.items():
        met = [row for row in rows if is_met(row)]
        if met:
            raise Refused("UNSUPPORTED_EVENT", kind=kind, at=met[0]["at"])

"""The value that silver must have for a value of PostgreSQL, with all that is known to differ."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from history.alterations import Unsent  # type: ignore[import-not-found]
from history.shapes import STAMP, Column  # type: ignore[import-not-found]
from history.writers import UnsentColumn  # type: ignore[import-not-found]
from unit.postgres_moments import days, interval_micros, timetz_at_utc  # type: ignore[import-not-found]
from unit.postgres_says import bits, expected  # type: ignore[import-not-found]

PROFILE = "precise"
_MISSING_DAYS = "1582-10-10"
_YEAR = re.compile(r"\d{4,}")


@dataclass(frozen=True, slots=True)
class Wanted:
    """One of `values`, or whatever there is."""

    values: tuple[Any, ...] = ()
    anything: bool = False

    def is_met_by(self, value: Any) -> bool:
        return self.anything or any(repr(value) == repr(each) for each in self.values)


@dataclass(frozen=True, slots=True)
class Unwritten:
    """Which columns which rows have not sent (`cdc-semantics` §12, 12: ALTER TABLE sends nothing)."""

    columns: Sequence[UnsentColumn]
    read_again: Set[str] = frozenset()
    """Tables that a snapshot by signal may have sent as a whole, whenever it came to that."""

    def of(self, table: str, column: str, stamp: str | None) -> UnsentColumn | None:
        """None when some event of the row had the column."""
        if stamp is None:
            return None
        for each in reversed(self.columns):
            if (each.table, each.column) == (table, column):
                return each if int(stamp) < each.stamp else None
        return None


def wanted(
    table: str,
    column: Column,
    text: str | None,
    type_: pa.DataType,
    *,
    stamp: str | None,
    unwritten: Unwritten,
) -> Wanted:
    """Of a row whose last write has this `stamp`."""
    values = [plain_value(text, column.sql, type_), *_as_snapshots_read_it(text, column.sql)]
    if (
        values[0] is None and column.default is not None
    ):  # NULL becomes DEFAULT, and so does NaN, sent as NULL
        values.append(plain_value(column.default, column.sql, type_))
    unsent = unwritten.of(table, column.name, stamp) if column.name != STAMP else None
    if unsent is None:
        return Wanted(tuple(values))
    if unsent.silver is Unsent.ANYTHING:
        return Wanted(anything=True)
    may_be_told = column.default is not None or table in unwritten.read_again  # by the schema, by a snapshot
    return Wanted((None, *values) if may_be_told else (None,))


_SENT_AS: dict[str, Callable[[str], Any]] = {
    "interval": lambda text: int(interval_micros(text)),
    "time with time zone": timetz_at_utc,
    "bit varying": bits,
}
"""Where the connector sends something else: `include/docs/known-inequalities.md`."""


def plain_value(text: str | None, sql: str, type_: pa.DataType) -> Any:
    """NULL stands for what no column of the lake can hold, and for what the connector does not send."""
    if text is None or _is_lost(text, sql):
        return None
    if sql == "numeric" and "." in text:  # zeros at its end are not sent
        text = text.rstrip("0").removesuffix(".")
    if sql == "inet" and ":" in text:
        return text.removesuffix("/128")
    image = _SENT_AS.get(re.sub(r"\(.*\)", "", sql))
    if image is not None:
        return image(text)
    return expected(text, sql.removeprefix("history."), type_, PROFILE)


def _as_snapshots_read_it(text: str | None, sql: str) -> list[Any]:
    """Java's old calendar, in which ten days of 1582 do not exist, and years before Christ lose their era."""
    if sql != "date" or text is None:
        return []
    if text.startswith(_MISSING_DAYS):
        return [days(text) + 10]
    return [days(text.removesuffix(" BC"))] if text.endswith("BC") else []


def _is_lost(text: str, sql: str) -> bool:
    if sql.startswith("numeric"):
        return text in ("NaN", "Infinity", "-Infinity")
    if sql == "date":
        return "infinity" in text or text.endswith("BC") or int(_YEAR.match(text)[0]) > 9999  # type: ignore[index]
    return sql.startswith("timestamp") and "infinity" in text

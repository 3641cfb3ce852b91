"""What the source's converters make of values that they cannot send (see `postgres_known`)."""

from __future__ import annotations

import re
from typing import Any

from unit.postgres_differs import Difference  # type: ignore[import-not-found]
from unit.postgres_moments import (  # type: ignore[import-not-found]
    calendar,
    clock,
    days,
    interval_micros,
    micros_of_day,
    offset,
    structured,
    timetz_at_utc,
)
from unit.postgres_says import array_items, bits  # type: ignore[import-not-found]

_OUTER = {"{{1,2},{3,NULL}}": 2, "{{1,2},{3,4}}": 2, "{{{1},{2}}}": 1}
_DAY = 86_400_000_000
_GREGORIAN = days("1582-10-15")
_JULIAN_1970 = 719_471
"""So that 5 October 1582 is the day that is 15 October here."""


def months_as_days(difference: Difference) -> int:
    return int(interval_micros(_said(difference)))


def at_utc(difference: Difference) -> Any:
    if difference.sql.endswith("[]"):
        return [timetz_at_utc(item) for item in array_items(difference.said)]
    return timetz_at_utc(difference.said)


def number_of_bits(difference: Difference) -> bytes:
    return bytes(bits(_said(difference)))


def cut_times(difference: Difference) -> list[Any]:
    """The milliseconds of one day."""
    cut = [micros_of_day(item) % _DAY // 1000 * 1000 for item in array_items(difference.said)]
    return [{**clock(each), "precision": 6} for each in cut] if difference.profile == "structured" else cut


def cut_to_millis(difference: Difference) -> Any:
    said = _said(difference)
    items = array_items(said) if difference.sql.endswith("[]") else [said]
    cut = [_micros(item, difference.sql) // 1000 * 1000 for item in items]
    return cut if difference.sql.endswith("[]") else cut[0]


def as_double(difference: Difference) -> Any:
    if difference.sql.endswith("[]"):
        return [float(item) for item in array_items(difference.said)]
    return float(re.sub("[$,]", "", _said(difference)))


def with_2046_zeros(difference: Difference) -> str:
    return _said(difference) + "." + "0" * 2046


def without_zeros_at_the_end(difference: Difference) -> Any:
    if difference.sql.endswith("[]"):
        return [_stripped(item) for item in array_items(difference.said)]
    return _stripped(_said(difference))


def of_outer_dimension(difference: Difference) -> list[Any]:
    """Of texts, what Java calls a list of texts at that place in its memory."""
    found: list[Any] = difference.found
    if difference.place == "nested.words":
        pattern = r"\[Ljava\.lang\.String;@[0-9a-f]+"
        return [each if re.fullmatch(pattern, each) else pattern for each in found]
    return [None] * _OUTER.get(_said(difference), 0)


def without_era(difference: Difference) -> Any:
    """BC as AD, and days that no calendar had as those that came ten later."""
    said = _said(difference)
    if not difference.sql.endswith("[]"):
        return _moment(_without_era(said), difference)
    return [None if item is None else _moment(_without_era(item), difference) for item in array_items(said)]


def by_julian_calendar(difference: Difference) -> list[Any]:
    return [_moment(_julian(item), difference) for item in array_items(difference.said)]


def within_nanoseconds(difference: Difference) -> Any:
    """NULL outside of what 64 bits hold; items too."""
    if not difference.sql.endswith("[]"):
        return None
    return [_nanos(item) for item in array_items(difference.said)]


def _without_era(item: str) -> str:
    gap = re.match("1582-10-(0[5-9]|1[0-4])", item)
    ten_later = item.replace(gap[0], f"1582-10-{int(gap[1]) + 10}") if gap else item
    return ten_later.removesuffix(" BC")


def _julian(item: str) -> str:
    """The same date in the Julian calendar, as a date of ours."""
    if days(item) >= _GREGORIAN:
        return item
    year, month, day = (int(part) for part in item[:10].split("-"))
    year = (1 - year if item.endswith("BC") else year) - (month < 3)
    passed = 365 * year + year // 4 + (153 * ((month - 3) % 12) + 2) // 5 + day
    found = calendar(passed - _JULIAN_1970)
    era, year = (" BC", 1 - found["year"]) if found["year"] < 1 else ("", found["year"])
    return f"{year:04}-{found['month']:02}-{found['day']:02}{item[10:].removesuffix(' BC')}{era}"


def _moment(text: str, difference: Difference) -> Any:
    sql = difference.sql.removesuffix("[]")
    if difference.profile == "structured":
        return structured(text, sql)
    if sql == "date":
        return days(text)
    micros = _micros(text, sql)
    cut = difference.profile == "connect" and "without" in sql
    return micros // 1000 * 1000 if cut else micros


def _nanos(item: str) -> int | None:
    micros = _micros(item, "timestamp")
    return micros if -(2**63) <= micros * 1000 < 2**63 else None


def _micros(text: str, sql: str) -> int:
    if sql.startswith("time "):
        return int(micros_of_day(text))
    moment = days(text) * _DAY + micros_of_day(text)
    return int(moment - offset(text) * 1_000_000 if "with time" in sql else moment)


def _stripped(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _said(difference: Difference) -> str:
    return str(difference.said)

"""PostgreSQL's text of days and instants as numbers, also where Python's own types have no such year."""

from __future__ import annotations

import re

from cdc_lakehouse.avro.typed.values import FIRST_DAY, INFINITY, LAST_DAY, MINUS_INFINITY

_DAY = re.compile(r"(\d{4,})-(\d\d)-(\d\d)")
_CLOCK = re.compile(r" (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
_MICROS_OF_A_DAY = 86_400_000_000
_UNIX_DAY = 719_469
"""Days from March 1st of the year 0 to 1970-01-01, and one."""


def days(text: str) -> int | None:
    """Since 1970; None for what no date of the lake can be: infinity, years before 1 or beyond 9999."""
    number = _days(text)
    return None if number is None or not FIRST_DAY <= number <= LAST_DAY else number


def micros(text: str) -> int | None:
    """Since 1970, of a text in UTC; None for infinity and for what 64 bits do not hold."""
    number, clock = _days(text), _CLOCK.search(text)
    if number is None or clock is None:
        return None
    hour, minute, second, part = clock.groups()
    seconds = (int(hour) * 60 + int(minute)) * 60 + int(second)
    found = number * _MICROS_OF_A_DAY + seconds * 1_000_000 + int((part or "").ljust(6, "0"))
    return found if MINUS_INFINITY < found < INFINITY else None


def _days(text: str) -> int | None:
    """Of the proleptic Gregorian calendar; the year before 1 is 1 BC."""
    found = _DAY.match(text)
    if found is None:
        return None
    year, month, day = (int(part) for part in found.groups())
    if text.endswith("BC"):
        year = 1 - year
    year -= month < 3
    leaps = year // 4 - year // 100 + year // 400
    return 365 * year + leaps + (153 * ((month - 3) % 12) + 2) // 5 + day - _UNIX_DAY

"""ISO-8601 texts of dates and times into numbers, one value at a time (`cdc-semantics` §7)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from cdc_lakehouse.avro.typed.values import bad_value, days, out_of_range, scaled_micros

_DAYS_IN_400_YEARS = 146_097
_DAY_MICROS = 86_400_000_000
_DATE = r"([+-]?\d{4,9})-(\d\d)-(\d\d)"
_TIME = r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?"
_OFFSET = r"[+-]\d\d(?::?\d\d(?::?\d\d)?)?"

_ZONED = re.compile(rf"{_DATE}T{_TIME}(Z|{_OFFSET})", re.ASCII)
_LOCAL = re.compile(rf"{_DATE}T{_TIME}Z?", re.ASCII)
_ISO_DATE = re.compile(rf"{_DATE}(?:Z|{_OFFSET})?", re.ASCII)
_ISO_TIME = re.compile(rf"{_TIME}Z?", re.ASCII)

_INFINITIES = frozenset({"infinity", "-infinity"})


def zoned_to_micros(text: str) -> int:
    """As `ZonedTimestamp` sends it: with an offset, any number of fraction digits, any year."""
    if text in _INFINITIES:
        raise out_of_range("timestamp is infinity")
    found = _ZONED.fullmatch(text)
    if found is None:
        raise bad_value("text that is not a timestamp with zone")
    year, month, day, *clock, offset = found.groups()
    return scaled_micros(_wall_micros(year, month, day, clock) - _offset_seconds(offset) * 1_000_000)


def local_to_micros(text: str) -> int:
    """As `IsoTimestamp` sends it: the clock on the wall, whose `Z` means nothing."""
    if text in _INFINITIES:
        raise out_of_range("timestamp is infinity")
    found = _LOCAL.fullmatch(text)
    if found is None:
        raise bad_value("text that is not a timestamp")
    year, month, day, *clock = found.groups()
    return scaled_micros(_wall_micros(year, month, day, clock))


def date_to_days(text: str) -> int:
    """As `IsoDate` sends it: `2017-09-15Z`."""
    if text in _INFINITIES:
        raise out_of_range("date is infinity")
    found = _ISO_DATE.fullmatch(text)
    if found is None:
        raise bad_value("text that is not a date")
    return days(_days_since_1970(*map(int, found.groups())))


def time_to_micros(text: str) -> int:
    """As `IsoTime` sends it: `23:59:59.999999Z`; 24:00 is the end of the day."""
    found = _ISO_TIME.fullmatch(text)
    if found is None:
        raise bad_value("text that is not a time")
    micros = _micros_of_day(found.groups(), last_hour=24)
    if micros > _DAY_MICROS:
        raise bad_value("text that is not a time")
    return micros


def _wall_micros(year: str, month: str, day: str, clock: Sequence[str | None]) -> int:
    days_before = _days_since_1970(int(year), int(month), int(day))
    return days_before * _DAY_MICROS + _micros_of_day(clock, last_hour=23)


def _micros_of_day(clock: Sequence[str | None], *, last_hour: int) -> int:
    """Of hour, minute, second and fraction; the last two may be missing."""
    hour, minute, second = (int(part or 0) for part in clock[:3])
    if hour > last_hour or minute > 59 or second > 59:
        raise bad_value("text that is not a time of day")
    seconds = hour * 3600 + minute * 60 + second
    return seconds * 1_000_000 + int((clock[3] or "")[:6].ljust(6, "0"))


def _offset_seconds(offset: str) -> int:
    if offset == "Z":
        return 0
    digits = offset[1:].replace(":", "").ljust(6, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60 + int(digits[4:6])
    return -seconds if offset[0] == "-" else seconds


def _days_since_1970(year: int, month: int, day: int) -> int:
    """The Gregorian calendar repeats every 400 years, so any year has a twin that `date` knows."""
    cycles, twin = divmod(year, 400)
    try:
        ordinal = date(twin + 400, month, day).toordinal()
    except ValueError:
        raise bad_value("text that is not a date") from None
    return ordinal + (cycles - 1) * _DAYS_IN_400_YEARS - 719_163

"""PostgreSQL's text of a moment or an interval into what the decoder must give for it (`postgres_says`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

_DATE = re.compile(r"(\d{4,})-(\d\d)-(\d\d)")
_CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
_ZONE = re.compile(r"([+-])(\d\d)(?::(\d\d))?$")
_INTERVAL = re.compile(r"(-?\d+) (year|mon|day)s?")


def _date(text: str, type_: pa.DataType, profile: str) -> Any:
    return days(text)


def days(text: str) -> int:
    """Proleptic Gregorian; year 1 BC is 0."""
    year, month, day = (int(part) for part in _DATE.match(text).groups())  # type: ignore[union-attr]
    year = 1 - year if text.endswith("BC") else year
    shifted = year - (month < 3)
    leaps = shifted // 4 - shifted // 100 + shifted // 400
    return 365 * shifted + leaps + (153 * ((month - 3) % 12) + 2) // 5 + day - 719_469


def micros_of_day(text: str) -> int:
    hour, minute, second, part = _CLOCK.search(text).groups()  # type: ignore[union-attr]
    return (int(hour) * 3600 + int(minute) * 60 + int(second)) * 1_000_000 + int((part or "").ljust(6, "0"))


def offset(text: str) -> int:
    found = _ZONE.search(text.removesuffix(" BC"))
    if found is None:
        return 0
    seconds = int(found[2]) * 3600 + int(found[3] or 0) * 60
    return -seconds if found[1] == "-" else seconds


def _time(text: str, type_: pa.DataType, profile: str) -> int:
    return micros_of_day(text)


def _timetz(text: str, type_: pa.DataType, profile: str) -> str:
    if offset(text):
        raise ValueError("not at UTC")
    return timetz_at_utc(text)


def timetz_at_utc(text: str) -> str:
    """The 24:00 of UTC stays."""
    seconds = (micros_of_day(text) // 1_000_000 - offset(text)) % 86_400
    hour = "24" if text.startswith("24:00:00+00") else f"{seconds // 3600:02}"
    part = re.search(r"\.\d+", text)
    return f"{hour}:{seconds // 60 % 60:02}:{seconds % 60:02}{part[0] if part else ''}Z"


def _timestamp(text: str, type_: pa.DataType, profile: str) -> int:
    return days(text) * 86_400_000_000 + micros_of_day(text)


def _timestamptz(text: str, type_: pa.DataType, profile: str) -> int:
    return days(text) * 86_400_000_000 + micros_of_day(text) - offset(text) * 1_000_000


def _interval_parts(text: str) -> dict[str, int]:
    """All members of a negative clock are negative."""
    micros = micros_of_day(text) if ":" in text else 0
    sign = -1 if re.search(r"-\d\d:", text) else 1
    parts = {"year": 0, "mon": 0, "day": 0} | {unit: int(count) for count, unit in _INTERVAL.findall(text)}
    hours, minutes = micros // 3_600_000_000, micros // 60_000_000 % 60
    return parts | {"hours": sign * hours, "minutes": sign * minutes, "micros": sign * (micros % 60_000_000)}


def _interval(text: str, type_: pa.DataType, profile: str) -> Any:
    """Microseconds say no month: how long one is depends on the date it is added to."""
    parts = _interval_parts(text)
    if pa.types.is_string(type_):
        seconds = Decimal(parts["micros"]) / 1_000_000
        date_part = f"{parts['year']}Y{parts['mon']}M{parts['day']}D"
        return f"P{date_part}T{parts['hours']}H{parts['minutes']}M{seconds:f}S"
    if parts["year"] or parts["mon"]:
        raise ValueError("months")
    return interval_micros(text)


def interval_micros(text: str) -> int:
    """With months of 30.4375 days."""
    parts = _interval_parts(text)
    days_ = Decimal(parts["year"] * 12 + parts["mon"]) * Decimal("30.4375") + parts["day"]
    minutes = parts["hours"] * 60 + parts["minutes"]
    return int(days_ * 86_400_000_000) + minutes * 60_000_000 + parts["micros"]


def structured(text: str, sql: str) -> dict[str, Any]:
    name, precision = re.sub(r"\(\d\)", "", sql), re.search(r"\((\d)\)", sql)
    digits = int(precision[1]) if precision else 6
    if name == "interval":
        parts = _interval_parts(text)
        seconds = int(parts["micros"] / 1_000_000)
        return {
            "years": parts["year"], "months": parts["mon"], "days": parts["day"],
            "hours": parts["hours"], "minutes": parts["minutes"], "seconds": seconds,
            "nanos": (parts["micros"] - seconds * 1_000_000) * 1000, "precision": digits,
        }  # fmt: skip
    special = {"infinity": "POSITIVE_INFINITY", "-infinity": "NEGATIVE_INFINITY"}.get(text)
    found: dict[str, Any] = {}
    if name == "date" or name.startswith("timestamp"):
        found |= dict.fromkeys(("year", "month", "day")) if special else _date_part(text, name)
    if name != "date":
        micros = None if special else micros_of_day(text)
        if micros is not None and name.endswith("zone") and name.startswith("timestamp"):
            micros = (micros - offset(text) * 1_000_000) % 86_400_000_000
        found |= dict.fromkeys(("hour", "minute", "second", "nanos")) if micros is None else clock(micros)
    if name.endswith("with time zone"):
        found["offsetSeconds"] = None if special else offset(text) if name.startswith("time ") else 0
    if name == "timestamp with time zone":
        found["zoneId"] = None if special else "Z"
    if not name.startswith("time "):
        found["specialValue"] = special
    return found if name == "date" else {**found, "precision": digits}


def _date_part(text: str, name: str) -> dict[str, int]:
    day = days(text)
    if name == "timestamp with time zone":
        day += (micros_of_day(text) - offset(text) * 1_000_000) // 86_400_000_000
    return calendar(day)


def calendar(day: int) -> dict[str, int]:
    moment = np.datetime64(day, "D")
    year = int(moment.astype("datetime64[Y]").astype(int)) + 1970
    month = int(moment.astype("datetime64[M]").astype(int)) % 12 + 1
    first = moment.astype("datetime64[M]").astype("datetime64[D]")
    return {"year": year, "month": month, "day": int((moment - first).astype(int)) + 1}


def clock(micros: int) -> dict[str, int]:
    seconds = micros // 1_000_000
    return {
        "hour": seconds // 3600, "minute": seconds // 60 % 60, "second": seconds % 60,
        "nanos": micros % 1_000_000 * 1000,
    }  # fmt: skip


MOMENTS: dict[str, Callable[[str, pa.DataType, str], Any]] = {
    "date": _date,
    "time without time zone": _time,
    "time with time zone": _timetz,
    "timestamp without time zone": _timestamp,
    "timestamp with time zone": _timestamptz,
    "interval": _interval,
}
"""PostgreSQL's type -> its reader."""

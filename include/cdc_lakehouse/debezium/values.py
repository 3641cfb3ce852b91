"""Raw values of Debezium's semantic types into final ones, one value at a time (`cdc-semantics` §7).

What Avro itself gives a meaning to stands in `avro.typed.values`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from cdc_lakehouse.avro.typed.values import bad_value, out_of_range, plain_text, scaled_micros, unscaled

_DAYS_IN_400_YEARS = 146_097
_DAY_MICROS = 86_400_000_000

_ZONED = re.compile(
    r"([+-]?\d{4,9})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d(?::?\d\d(?::?\d\d)?)?)",
    re.ASCII,
)


def small(value: int) -> int:
    """A number that its source declared to have 16 bits."""
    if not -(2**15) <= value < 2**15:
        raise out_of_range("int of more than 16 bits")
    return value


def time_nanos_to_micros(value: int) -> int:
    return value // 1000


def zoned_to_micros(text: str) -> int:
    """ISO-8601 with offset, as `ZonedTimestamp` sends it: any number of fraction digits, any year."""
    if text in ("infinity", "-infinity"):
        raise out_of_range("timestamp is infinity")
    found = _ZONED.fullmatch(text)
    if found is None:
        raise bad_value("text that is not a timestamp with zone")
    year, month, day, hour, minute, second, fraction, offset = found.groups()
    if int(hour) > 23 or int(minute) > 59 or int(second or 0) > 59:
        raise bad_value("text that is not a timestamp with zone")
    seconds = int(hour) * 3600 + int(minute) * 60 + int(second or 0) - _offset_seconds(offset)
    micros = seconds * 1_000_000 + int((fraction or "")[:6].ljust(6, "0"))
    return scaled_micros(_days_since_1970(int(year), int(month), int(day)) * _DAY_MICROS + micros)


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
        raise bad_value("text that is not a timestamp with zone") from None
    return ordinal + (cycles - 1) * _DAYS_IN_400_YEARS - 719_163


def variable_scale(value: Mapping[str, Any]) -> str:
    return plain_text(unscaled(value["value"]), value["scale"])

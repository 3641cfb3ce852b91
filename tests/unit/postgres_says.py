"""PostgreSQL's text of a value into what the decoder must give for it, written apart from the decoder.

Values are plain: days, microseconds, ints, Decimal, text, bytes; see `plain`.
"""

from __future__ import annotations

import re
import struct
from base64 import b64encode
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

_DATE = re.compile(r"(\d{4,})-(\d\d)-(\d\d)")
_CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
_ZONE = re.compile(r"([+-])(\d\d)(?::(\d\d))?$")
_INTERVAL = re.compile(r"(-?\d+) (year|mon|day)s?")


def plain(column: pa.Array) -> list[Any]:
    """Python values without `datetime`, whose years end at 9999."""
    return [None if value is None else value for value in column.cast(_plain_type(column.type)).to_pylist()]


def _plain_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_date32(type_):
        return pa.int32()
    if pa.types.is_timestamp(type_):
        return pa.int64()
    if pa.types.is_list(type_):
        return pa.list_(_plain_type(type_.value_type))
    return type_


def expected(text: str, sql: str, type_: pa.DataType, profile: str) -> Any:
    """`sql` is PostgreSQL's type, `type_` the one that the decoder gives it."""
    if sql.endswith("[]"):
        items = array_items(text)
        inner = type_.value_type
        return [None if item is None else expected(item, sql[:-2], inner, profile) for item in items]
    name = re.sub(r"\(.*\)", "", sql)
    if name == "character":
        return text.ljust(int(sql[10:-1]))  # a cast to text strips what the value is padded with
    if pa.types.is_struct(type_) and ("time" in name or name in ("date", "interval")):
        return structured(text, sql)
    return READERS.get(name, _same)(text, type_, profile)


def _same(text: str, type_: pa.DataType, profile: str) -> Any:
    """Also for types unknown to the connector, which it sends as bytes, or as text in base64 or hex."""
    return text


def _number(text: str, type_: pa.DataType, profile: str) -> Any:
    text = re.sub(r"[$,]", "", text)
    if pa.types.is_integer(type_):
        return int(text)
    if pa.types.is_float32(type_):
        return float(np.float32(text))
    if pa.types.is_float64(type_):
        return float(text)
    return Decimal(text) if pa.types.is_decimal(type_) else _plain_digits(text)


def _plain_digits(text: str) -> str:
    return {"NaN": "NAN", "Infinity": "POSITIVE_INFINITY", "-Infinity": "NEGATIVE_INFINITY"}.get(text, text)


def _date(text: str, type_: pa.DataType, profile: str) -> Any:
    return days(text)


def days(text: str) -> int:
    """Proleptic Gregorian; year 1 BC is 0."""
    year, month, day = (int(part) for part in _DATE.match(text).groups())  # type: ignore[union-attr]
    year = 1 - year if text.endswith("BC") else year
    shifted = year - (month < 3)
    leaps = shifted // 4 - shifted // 100 + shifted // 400
    return 365 * shifted + leaps + (153 * ((month - 3) % 12) + 2) // 5 + day - 719_469


def _micros_of_day(text: str) -> int:
    hour, minute, second, part = _CLOCK.search(text).groups()  # type: ignore[union-attr]
    return (int(hour) * 3600 + int(minute) * 60 + int(second)) * 1_000_000 + int((part or "").ljust(6, "0"))


def _offset(text: str) -> int:
    found = _ZONE.search(text.removesuffix(" BC"))
    if found is None:
        return 0
    seconds = int(found[2]) * 3600 + int(found[3] or 0) * 60
    return -seconds if found[1] == "-" else seconds


def _time(text: str, type_: pa.DataType, profile: str) -> int:
    return _floored(_micros_of_day(text), profile)


def _floored(micros: int, profile: str) -> int:
    """Kafka Connect's own types know no more than milliseconds."""
    return micros // 1000 * 1000 if profile == "connect" else micros


def _timetz(text: str, type_: pa.DataType, profile: str) -> str:
    """The connector moves it to UTC, and its 24:00 stays."""
    seconds = (_micros_of_day(text) // 1_000_000 - _offset(text)) % 86_400
    hour = "24" if text.startswith("24:00:00+00") else f"{seconds // 3600:02}"
    part = re.search(r"\.\d+", text)
    return f"{hour}:{seconds // 60 % 60:02}:{seconds % 60:02}{part[0] if part else ''}Z"


def _timestamp(text: str, type_: pa.DataType, profile: str) -> int:
    return _floored(days(text) * 86_400_000_000 + _micros_of_day(text), profile)


def _timestamptz(text: str, type_: pa.DataType, profile: str) -> int:
    return days(text) * 86_400_000_000 + _micros_of_day(text) - _offset(text) * 1_000_000


def _interval_parts(text: str) -> dict[str, int]:
    return {unit: int(count) for count, unit in _INTERVAL.findall(text)}


def _interval(text: str, type_: pa.DataType, profile: str) -> Any:
    parts = _interval_parts(text)
    clock = _micros_of_day(text) if ":" in text else 0
    if pa.types.is_string(type_):
        seconds = Decimal(clock % 60_000_000) / 1_000_000
        hours, minutes = clock // 3_600_000_000, clock // 60_000_000 % 60
        date_part = f"{parts.get('year', 0)}Y{parts.get('mon', 0)}M{parts.get('day', 0)}D"
        return f"P{date_part}T{hours}H{minutes}M{seconds:f}S"
    months = parts.get("year", 0) * 12 + parts.get("mon", 0)
    return int((Decimal(months) * Decimal("30.4375") + parts.get("day", 0)) * 86_400_000_000) + clock


def _bytes(text: str, type_: pa.DataType, profile: str) -> Any:
    data = bytes.fromhex(text[2:])
    if pa.types.is_binary(type_):
        return data
    return data.hex() if profile == "structured" else b64encode(data).decode()


def _unknown(text: str, type_: pa.DataType, profile: str) -> str:
    """`include.unknown.datatypes`: the bytes of PostgreSQL's text, under `binary.handling.mode`."""
    return b64encode(text.encode()).decode()


def _bits(text: str, type_: pa.DataType, profile: str) -> Any:
    if pa.types.is_boolean(type_):
        return text == "1"
    return int(text or "0", 2).to_bytes(8, "little").rstrip(b"\0")


def _inet(text: str, type_: pa.DataType, profile: str) -> str:
    """Only a cast to text names the mask of a single host."""
    return text.removesuffix("/128").removesuffix("/32")


def _vector(text: str, type_: pa.DataType, profile: str) -> list[float]:
    numbers = [float(part) for part in text.strip("[]").split(",")]
    return [float(np.float32(each)) for each in numbers] if pa.types.is_float32(type_.value_type) else numbers


def _sparse(text: str, type_: pa.DataType, profile: str) -> dict[str, Any]:
    body, dimensions = text.split("/")
    pairs = [part.split(":") for part in body.strip("{}").split(",") if part]
    return {"dimensions": int(dimensions), "vector": [(int(key), float(value)) for key, value in pairs]}


def _pairs(text: str, type_: pa.DataType, profile: str) -> Any:
    found = re.findall(r'"((?:[^"\\]|\\.)*)"=>(?:"((?:[^"\\]|\\.)*)"|NULL)', text)
    pairs = [(key, value if f'"{key}"=>"' in text else None) for key, value in found]
    if pa.types.is_map(type_):
        return pairs
    parts = ['"{}":{}'.format(key, "null" if value is None else f'"{value}"') for key, value in pairs]
    return "{" + ",".join(parts) + "}"


def _numbers_in(text: str) -> list[float]:
    return [float(part) for part in re.findall(r"[-+]?(?:Infinity|[\d.]+(?:e[-+]?\d+)?)", text)]


def _point(text: str, type_: pa.DataType, profile: str) -> dict[str, Any]:
    x, y = _numbers_in(text)
    return {"x": x, "y": y, "wkb": struct.pack("<BIdd", 1, 1, x, y), "srid": None}


def _line(text: str, type_: pa.DataType, profile: str) -> dict[str, float]:
    return dict(zip("abc", _numbers_in(text), strict=True))


def _circle(text: str, type_: pa.DataType, profile: str) -> dict[str, Any]:
    x, y, radius = _numbers_in(text)
    return {"center": _point(f"({x},{y})", type_, profile), "radius": radius}


def _outline(text: str, kind: str) -> dict[str, Any]:
    """Well-known binary of a line string, or of a polygon with its ring closed."""
    numbers = _numbers_in(text)
    points = list(zip(numbers[::2], numbers[1::2], strict=True))
    if kind == "box":
        (right, top), (left, bottom) = points
        points = [(right, top), (right, bottom), (left, bottom), (left, top)]
    closed = kind in ("box", "polygon")
    points = [*points, points[0]] if closed else points
    head = struct.pack("<BII", 1, 3, 1) if closed else struct.pack("<BI", 1, 2)
    wkb = head + struct.pack("<I", len(points)) + b"".join(struct.pack("<dd", *point) for point in points)
    is_open = [("closed", "false")] if kind == "path" and text.startswith("[") else []
    return {"wkb": wkb, "srid": None, "extensions": [*is_open, ("type", kind)]}


def structured(text: str, sql: str) -> dict[str, Any]:
    name, precision = re.sub(r"\(\d\)", "", sql), re.search(r"\((\d)\)", sql)
    digits = int(precision[1]) if precision else 6
    if name == "interval":
        parts, clock = _interval_parts(text), _micros_of_day(text) if ":" in text else 0
        return {
            "years": parts.get("year", 0), "months": parts.get("mon", 0), "days": parts.get("day", 0),
            "hours": clock // 3_600_000_000, "minutes": clock // 60_000_000 % 60,
            "seconds": clock // 1_000_000 % 60, "nanos": clock % 1_000_000 * 1000, "precision": digits,
        }  # fmt: skip
    special = {"infinity": "POSITIVE_INFINITY", "-infinity": "NEGATIVE_INFINITY"}.get(text)
    found: dict[str, Any] = {}
    if name == "date" or name.startswith("timestamp"):
        found |= dict.fromkeys(("year", "month", "day")) if special else _calendar(text, name)
    if name != "date":
        micros = None if special else _micros_of_day(text)
        if micros is not None and name.endswith("zone") and name.startswith("timestamp"):
            micros = (micros - _offset(text) * 1_000_000) % 86_400_000_000
        found |= dict.fromkeys(("hour", "minute", "second", "nanos")) if micros is None else _clock(micros)
    if name.endswith("with time zone"):
        found["offsetSeconds"] = None if special else _offset(text) if name.startswith("time ") else 0
    if name == "timestamp with time zone":
        found["zoneId"] = None if special else "Z"
    if not name.startswith("time "):
        found["specialValue"] = special
    return found if name == "date" else {**found, "precision": digits}


def _calendar(text: str, name: str) -> dict[str, int]:
    day = days(text)
    if name == "timestamp with time zone":
        day += (_micros_of_day(text) - _offset(text) * 1_000_000) // 86_400_000_000
    moment = np.datetime64(day, "D")
    year = int(moment.astype("datetime64[Y]").astype(int)) + 1970
    month = int(moment.astype("datetime64[M]").astype(int)) % 12 + 1
    first = moment.astype("datetime64[M]").astype("datetime64[D]")
    return {"year": year, "month": month, "day": int((moment - first).astype(int)) + 1}


def _clock(micros: int) -> dict[str, int]:
    seconds = micros // 1_000_000
    return {
        "hour": seconds // 3600, "minute": seconds // 60 % 60, "second": seconds % 60,
        "nanos": micros % 1_000_000 * 1000,
    }  # fmt: skip


def array_items(text: str) -> list[str | None]:
    """Of an array literal with one dimension."""
    found = re.findall(r'"((?:[^"\\]|\\.)*)"|([^",{}]+)', text)
    return [None if bare == "NULL" else bare or re.sub(r"\\(.)", r"\1", inside) for inside, bare in found]


READERS: dict[str, Callable[[str, pa.DataType, str], Any]] = {
    **dict.fromkeys(("smallint", "integer", "bigint", "oid", "real", "double precision"), _number),
    **dict.fromkeys(("numeric", "money"), _number),
    "boolean": lambda text, *_: text.startswith("t"),
    "date": _date,
    "time without time zone": _time,
    "time with time zone": _timetz,
    "timestamp without time zone": _timestamp,
    "timestamp with time zone": _timestamptz,
    "interval": _interval,
    "bytea": _bytes,
    "inet": _inet,
    "bit": _bits,
    "bit varying": _bits,
    **dict.fromkeys(("vector", "halfvec"), _vector),
    "sparsevec": _sparse,
    "hstore": _pairs,
    "point": _point,
    "line": _line,
    "circle": _circle,
    **{kind: lambda text, *_, kind=kind: _outline(text, kind) for kind in ("lseg", "box", "path", "polygon")},
    **dict.fromkeys(("tsquery", "pg_lsn", "types.pair", "int4multirange"), _unknown),
}

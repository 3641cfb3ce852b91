"""PostgreSQL's text of a value into what the decoder must give for it, written apart from the decoder.

Values are plain: days, microseconds, ints, Decimal, text, bytes; see `plain`.
"""

from __future__ import annotations

import math
import re
import struct
from base64 import b64encode
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from unit.postgres_moments import MOMENTS, structured  # type: ignore[import-not-found]


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
        if text.startswith(("{{", "[")):
            raise ValueError("more dimensions than a list has, or another lower bound")
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
        return _double(text)
    return Decimal(text) if pa.types.is_decimal(type_) else _plain_digits(text)


def _double(text: str) -> float:
    found = float(text)
    if math.isfinite(found) and Decimal(repr(found)) != Decimal(text):
        raise ValueError("more digits than a double keeps")
    return found


def _plain_digits(text: str) -> str:
    return {"NaN": "NAN", "Infinity": "POSITIVE_INFINITY", "-Infinity": "NEGATIVE_INFINITY"}.get(text, text)


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
    return bits(text)


def _varied_bits(text: str, type_: pa.DataType, profile: str) -> Any:
    raise ValueError("its length is not sent")


def bits(text: str) -> bytes:
    """The number that they are."""
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
        return [(_unescaped(key), value and _unescaped(value)) for key, value in pairs]
    parts = ['"{}":{}'.format(key, "null" if value is None else f'"{value}"') for key, value in pairs]
    return "{" + ",".join(parts) + "}"


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


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


def array_items(text: str) -> list[str | None]:
    """Of an array literal with one dimension."""
    found = re.findall(r'"((?:[^"\\]|\\.)*)"|([^",{}]+)', text)
    return [None if bare == "NULL" else bare or _unescaped(inside) for inside, bare in found]


READERS: dict[str, Callable[[str, pa.DataType, str], Any]] = {
    **dict.fromkeys(("smallint", "integer", "bigint", "oid", "real", "double precision"), _number),
    **dict.fromkeys(("numeric", "money"), _number),
    "boolean": lambda text, *_: text.startswith("t"),
    **MOMENTS,
    "bytea": _bytes,
    "inet": _inet,
    "bit": _bits,
    "bit varying": _varied_bits,
    **dict.fromkeys(("vector", "halfvec"), _vector),
    "sparsevec": _sparse,
    "hstore": _pairs,
    "point": _point,
    "line": _line,
    "circle": _circle,
    **{kind: lambda text, *_, kind=kind: _outline(text, kind) for kind in ("lseg", "box", "path", "polygon")},
    **dict.fromkeys(("tsquery", "pg_lsn", "types.pair", "int4multirange"), _unknown),
    **dict.fromkeys(("jsonpath", "xid8", "regclass", "pg_snapshot", "tid"), _unknown),
    **dict.fromkeys(("types.price",), _unknown),  # an item; a column is of the base type
}

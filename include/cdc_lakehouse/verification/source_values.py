"""PostgreSQL's text of a column as values of silver's type, and what of both sides does not count.

A reader belongs to a pair of types. What no reader knows is not compared, and named (`columns`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.verification import calendar
from cdc_lakehouse.verification.json_form import json_form

Texts: TypeAlias = pa.StringArray
Read: TypeAlias = tuple[pa.Array, np.ndarray]
"""Values, and which texts no value of the type can be."""

_NO_NUMBERS = pa.array(["NaN", "Infinity", "-Infinity"])
_NO_NUMBERS_AS_SENT = pa.array(["NAN", "POSITIVE_INFINITY", "NEGATIVE_INFINITY"])
_ITEM = re.compile(r'"((?:[^"\\]|\\.)*)"|([^",{}]+)')


@dataclass(frozen=True, slots=True)
class Reader:
    accepts: Callable[[pa.DataType], bool]
    """Types of silver that a column may have for this reader."""
    parse: Callable[[Texts, pa.DataType], Read]
    settle: Callable[[pa.Array], pa.Array] = lambda values: values
    """Of either side: the same value for what means the same."""


def reader_for(type_name: str, wanted: pa.DataType) -> Reader | None:
    """`type_name` is PostgreSQL's: `int8`, `_text` for an array. None: this pair is not compared."""
    if type_name.startswith("_") and pa.types.is_list(wanted):
        return _list_reader(type_name[1:], wanted)
    found = (reader for reader in _READERS.get(type_name, ()) if reader.accepts(wanted))
    return next(found, None)


def _nothing(texts: Texts) -> np.ndarray:
    return np.zeros(len(texts), bool)


def _as_it_is(texts: Texts, _type: pa.DataType) -> Read:
    return texts, _nothing(texts)


def _cast(texts: Texts, type_: pa.DataType) -> Read:
    """All at once, or one by one where some do not fit: the source's type can be wider by now."""
    try:
        return pc.cast(texts, type_), _nothing(texts)
    except pa.ArrowInvalid:
        return _one_by_one(texts, type_, lambda text: _scalar(text, type_))


def _scalar(text: str, type_: pa.DataType) -> object | None:
    try:
        found: object = pc.cast(pa.scalar(text), type_)
    except pa.ArrowInvalid:
        return None
    return found


def _one_by_one(texts: Texts, type_: pa.DataType, convert: Callable[[str], object | None]) -> Read:
    found = [None if text is None else convert(text) for text in texts.to_pylist()]
    beyond = np.array([value is None for value in found], bool) & ~_nulls(texts)
    return pa.array(found, type_), beyond


def _nulls(values: pa.Array) -> np.ndarray:
    return np.asarray(values.is_null().to_numpy(zero_copy_only=False), dtype=bool)


def _boolean(texts: Texts, _type: pa.DataType) -> Read:
    return pc.equal(texts, "t"), _nothing(texts)


def _one_bit(texts: Texts, _type: pa.DataType) -> Read:
    return pc.equal(texts, "1"), _nothing(texts)


def _number(texts: Texts, type_: pa.DataType) -> Read:
    """The connector sends NULL for what is no number (`cdc-semantics` §12)."""
    return _cast(_without(texts, _NO_NUMBERS), type_)


def _without(texts: pa.Array, absent: pa.Array) -> pa.Array:
    return pc.if_else(pc.is_in(texts, value_set=absent), pa.scalar(None, texts.type), texts)


def _money(texts: Texts, type_: pa.DataType) -> Read:
    return _cast(pc.replace_substring_regex(texts, r"[$,]", ""), type_)


def _plain_number(texts: pa.Array) -> pa.Array:
    """A numeric without a scale loses its last zeros on the way."""
    numbers = _without(_without(texts, _NO_NUMBERS_AS_SENT), _NO_NUMBERS)
    return pc.replace_substring_regex(numbers, r"(\.\d*[1-9])0+$|\.0*$", r"\1")


def _bytes(texts: Texts, _type: pa.DataType) -> Read:
    found = [None if text is None else bytes.fromhex(text[2:]) for text in texts.to_pylist()]
    return pa.array(found, pa.binary()), _nothing(texts)


def _date(texts: Texts, type_: pa.DataType) -> Read:
    try:
        return pc.cast(texts, type_), _nothing(texts)
    except pa.ArrowInvalid:
        values, beyond = _one_by_one(texts, pa.int32(), calendar.days)
        return values.view(type_), beyond


def _instant(texts: Texts, type_: pa.DataType) -> Read:
    """Of either kind: the session's zone is UTC."""
    try:
        plain = pc.cast(pc.replace_substring_regex(texts, r"\+00$", ""), pa.timestamp("us"))
        return plain.view(type_), _nothing(texts)
    except pa.ArrowInvalid:
        values, beyond = _one_by_one(texts, pa.int64(), calendar.micros)
        return values.view(type_), beyond


def _time(texts: Texts, type_: pa.DataType) -> Read:
    """24:00:00 is a time too."""
    parts = [pc.cast(pc.utf8_slice_codeunits(texts, start, start + 2), type_) for start in (0, 3, 6)]
    micros = pc.cast(pc.utf8_rpad(pc.utf8_slice_codeunits(texts, 9), 6, "0"), type_)
    seconds = pc.add(pc.multiply(pc.add(pc.multiply(parts[0], 60), parts[1]), 60), parts[2])
    return pc.add(pc.multiply(seconds, 1_000_000), micros), _nothing(texts)


def _unpadded(texts: pa.Array) -> pa.Array:
    return pc.utf8_rtrim(texts, " ")


def _documents(texts: pa.Array) -> pa.Array:
    return pa.array([None if text is None else json_form(text) for text in texts.to_pylist()], pa.string())


def _list_reader(item_type: str, wanted: pa.DataType) -> Reader | None:
    """Items of `time[]` lose their microseconds on the way."""
    inner = reader_for(item_type, wanted.value_type) if item_type != "time" else None
    if inner is None:
        return None

    def parse(texts: Texts, type_: pa.DataType) -> Read:
        lists = [None if text is None else _items(text) for text in texts.to_pylist()]
        beyond = np.array([found is None for found in lists], bool) & ~_nulls(texts)
        flat = [item for found in lists for item in found or ()]
        values, lost = inner.parse(pa.array(flat, pa.string()), type_.value_type)
        offsets = np.cumsum([0, *(len(found or ()) for found in lists)])
        beyond |= np.array([lost[a:b].any() for a, b in pairwise(offsets)], bool)
        found = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=texts.is_null())
        return found, beyond

    def settle(values: pa.Array) -> pa.Array:
        whole = pa.concat_arrays([values])
        mask = whole.is_null()
        return pa.ListArray.from_arrays(pc.fill_null(whole.offsets, 0), inner.settle(whole.values), mask=mask)

    return Reader(pa.types.is_list, parse, settle)


def _items(text: str) -> list[str | None] | None:
    """Of an array with one dimension that begins at 1; None for others, which the connector does not send."""
    if not text.startswith("{") or text.startswith("{{"):
        return None
    return [
        None if bare == "NULL" else bare or re.sub(r"\\(.)", r"\1", inside)
        for inside, bare in _ITEM.findall(text)
    ]


def _text_or(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


_TEXT = Reader(_text_or, _as_it_is)
_FLOAT = Reader(pa.types.is_floating, _cast)
_NUMERIC = (
    Reader(pa.types.is_decimal, _number),
    Reader(_text_or, _as_it_is, settle=_plain_number),
    Reader(pa.types.is_floating, _cast),
)
_AS_TEXT = (
    *("text", "varchar", "citext", "uuid", "xml", "enum", "ltree"),
    *("inet", "cidr", "macaddr", "macaddr8"),
    *("int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange"),
)
_READERS: dict[str, tuple[Reader, ...]] = {
    "bool": (Reader(pa.types.is_boolean, _boolean),),
    **dict.fromkeys(("int2", "int4", "int8", "oid"), (Reader(pa.types.is_integer, _cast),)),
    **dict.fromkeys(("float4", "float8"), (_FLOAT,)),
    "numeric": _NUMERIC,
    "money": (Reader(pa.types.is_decimal, _money), Reader(_text_or, _money, settle=_plain_number)),
    "bit": (Reader(pa.types.is_boolean, _one_bit),),
    **dict.fromkeys(_AS_TEXT, (_TEXT,)),
    "bpchar": (Reader(_text_or, _as_it_is, settle=_unpadded),),
    **dict.fromkeys(("json", "jsonb"), (Reader(_text_or, _as_it_is, settle=_documents),)),
    "bytea": (Reader(pa.types.is_binary, _bytes),),
    "date": (Reader(pa.types.is_date32, _date),),
    "time": (Reader(pa.types.is_int64, _time),),
    "timestamp": (Reader(lambda type_: type_ == pa.timestamp("us"), _instant),),
    "timestamptz": (Reader(lambda type_: type_ == pa.timestamp("us", "UTC"), _instant),),
}

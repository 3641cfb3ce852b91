"""Values that the source did not send (TOAST) and for which a placeholder stands (`cdc-semantics` §3)."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

PLACEHOLDER = "__debezium_unavailable_value"
PLACEHOLDER_SETTING = "unavailable.value.placeholder"
"""Name of the connector's setting."""
_NUMBER_LISTS = (pa.int16(), pa.int32(), pa.int64(), pa.date32())


def is_unavailable(column: pa.Array, *, placeholders: Iterable[str] = (PLACEHOLDER,)) -> np.ndarray:
    """Per value, whether it is one of the placeholders in a spelling of the column's type; null is not."""
    nothing = np.zeros(len(column), dtype=bool)
    if column.null_count == len(column):
        return nothing
    spellings = [each for text in placeholders for each in _spellings(column.type, placeholder_bytes(text))]
    if not spellings:
        return nothing
    if pa.types.is_nested(column.type):
        return _nested(column, spellings)
    places = np.flatnonzero(_sized(column, [len(_encoded(spelling)) for spelling in spellings]))
    if len(places):
        likely = column.take(pa.array(places))
        found = pc.is_in(likely, value_set=pa.array(spellings, column.type))
        nothing[places] = found.to_numpy(zero_copy_only=False)
    return nothing


def _encoded(spelling: str | bytes) -> bytes:
    return spelling.encode() if isinstance(spelling, str) else spelling


def placeholder_bytes(placeholder: str) -> bytes:
    """A placeholder that starts with `hex:` is the bytes after it."""
    if placeholder.startswith("hex:"):
        with suppress(ValueError):  # a connector does not start with such a setting
            return bytes.fromhex(placeholder.removeprefix("hex:"))
    return placeholder.encode()


def placeholder_uuid(data: bytes) -> str:
    """The one item of an untouched `uuid[]`: Java's name-UUID, version 3 without a namespace."""
    digest = hashlib.md5(data, usedforsecurity=False).digest()
    return str(uuid.UUID(bytes=digest, version=3))


@lru_cache(maxsize=256)
def _spellings(type_: pa.DataType, data: bytes) -> list[Any]:
    text = data.decode(errors="replace")
    if pa.types.is_string(type_):
        return [text, json.dumps({text: text}, separators=(",", ":"), ensure_ascii=False)]
    if pa.types.is_binary(type_):
        return [data]
    if pa.types.is_list(type_):
        return _list_spellings(type_.value_type, data)
    if pa.types.is_map(type_):
        return [[(text, text)]]
    return []


def _list_spellings(item: pa.DataType, data: bytes) -> list[Any]:
    if pa.types.is_string(item):
        return [[data.decode(errors="replace")], [placeholder_uuid(data)]]
    if pa.types.is_binary(item):
        return [[data]]
    if item in _NUMBER_LISTS:  # bytes of Java have a sign
        return [[byte - 256 if byte > 127 else byte for byte in data]]
    return []


def _nested(column: pa.Array, spellings: list[Any]) -> np.ndarray:
    """Lists of the right length first: hardly any value is left to compare."""
    found = np.zeros(len(column), dtype=bool)
    lists = column.cast(_numbers_for_dates(column.type)) if pa.types.is_list(column.type) else column
    for place in np.flatnonzero(_sized(lists, [len(spelling) for spelling in spellings])):
        found[place] = lists[int(place)].as_py() in spellings
    return found


def _sized(column: pa.Array, sizes: list[int]) -> np.ndarray:
    """Values of one of these lengths, by the offsets alone; perhaps nulls among them."""
    whole = np.frombuffer(column.buffers()[1] or bytes(4), np.int32)
    return np.isin(np.diff(whole[column.offset : column.offset + len(column) + 1]), sizes)


def _numbers_for_dates(type_: pa.DataType) -> pa.DataType:
    return pa.list_(pa.int32()) if type_.value_type == pa.date32() else type_

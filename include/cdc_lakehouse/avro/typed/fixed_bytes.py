"""Values of a fixed number of bytes: UUIDs and durations."""

from __future__ import annotations

from struct import Struct
from uuid import UUID

import numpy as np
import pyarrow as pa

from cdc_lakehouse.avro.typed.columns import Refused, numbers_of_offsets, validity_of

DURATION = pa.struct([("months", pa.int64()), ("days", pa.int64()), ("millis", pa.int64())])
_DURATION = Struct("<III")
_HEX = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), np.uint8).reshape(256, 2)
_TEXT = 36
_DASHES = [8, 13, 18, 23]
_DIGITS = [place for place in range(_TEXT) if place not in _DASHES]


def uuid_text(value: bytes) -> str:
    return str(UUID(bytes=value))


def uuid_texts(column: pa.Array) -> tuple[pa.Array, Refused]:
    """Twin of `uuid_text`."""
    texts = np.full((len(column), _TEXT), ord("-"), np.uint8)
    texts[:, _DIGITS] = _HEX[_bytes_of(column, 16)].reshape(len(column), 32)
    offsets = np.arange(0, (len(column) + 1) * _TEXT, _TEXT, dtype=np.int32)
    buffers = [validity_of(column), pa.py_buffer(offsets), pa.py_buffer(texts)]
    return pa.Array.from_buffers(pa.string(), len(column), buffers, column.null_count), None


def duration(value: bytes) -> dict[str, int]:
    months, days, millis = _DURATION.unpack(value)
    return {"months": months, "days": days, "millis": millis}


def durations(column: pa.Array) -> tuple[pa.Array, Refused]:
    """Twin of `duration`."""
    numbers = _bytes_of(column, _DURATION.size).view("<u4").astype(np.int64)
    children = [pa.array(np.ascontiguousarray(numbers[:, place])) for place in range(3)]
    validity = validity_of(column)
    return pa.Array.from_buffers(
        DURATION, len(column), [validity], column.null_count, children=children
    ), None


def _bytes_of(column: pa.Array, size: int) -> np.ndarray:
    """One line of bytes per value; nulls, and values of bad rows that were cut, hold whatever."""
    data = np.frombuffer(column.buffers()[2] or b"", np.uint8)
    if not len(data):
        return np.zeros((len(column), size), np.uint8)
    places = numbers_of_offsets(column)[:-1, None].astype(np.int64) + np.arange(size)
    found: np.ndarray = data[np.minimum(places, len(data) - 1)]
    return found

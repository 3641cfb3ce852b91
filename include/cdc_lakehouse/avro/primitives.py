"""Avro's smallest pieces, read one by one and strictly.

fastavro 1.13 takes union branch -1 for the last one, int values of 64 bits and varints of any length
for good; a corrupt record must not decode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any

from cdc_lakehouse.avro.faults import AvroFault, RecordFault

Bytes = bytes | memoryview
Reader = Callable[[Bytes, int], tuple[Any, int]]
"""(bytes, place) -> (value, place after it). `IndexError` or `struct.error` when the bytes end too early."""

_FLOAT, _DOUBLE = Struct("<f"), Struct("<d")
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1
_LONG_BYTES = 10


def read_long(data: Bytes, at: int) -> tuple[int, int]:
    first = data[at]
    if first < 0x80:
        return (first >> 1) ^ -(first & 1), at + 1
    value, shift = first & 0x7F, 7
    for place in range(at + 1, at + _LONG_BYTES):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >= 1 << 64:
                break
            return (value >> 1) ^ -(value & 1), place + 1
        shift += 7
    raise RecordFault(AvroFault.BAD_AVRO, "number of more than 64 bits")


def _read_int(data: Bytes, at: int) -> tuple[int, int]:
    first = data[at]
    if first < 0x80:
        return (first >> 1) ^ -(first & 1), at + 1
    value, end = read_long(data, at)
    if not _INT_MIN <= value <= _INT_MAX:
        raise RecordFault(AvroFault.BAD_AVRO, "int of more than 32 bits")
    return value, end


def _read_null(_data: Bytes, at: int) -> tuple[None, int]:
    return None, at


def _read_boolean(data: Bytes, at: int) -> tuple[bool, int]:
    byte = data[at]
    if byte > 1:
        raise RecordFault(AvroFault.BAD_AVRO, "boolean that is neither 0 nor 1")
    return byte == 1, at + 1


def _read_float(data: Bytes, at: int) -> tuple[float, int]:
    return _FLOAT.unpack_from(data, at)[0], at + 4


def _read_double(data: Bytes, at: int) -> tuple[float, int]:
    return _DOUBLE.unpack_from(data, at)[0], at + 8


def read_sized(data: Bytes, at: int) -> tuple[Bytes, int]:
    """Bytes behind their length."""
    size, at = read_long(data, at)
    end = at + size
    if size < 0:
        raise RecordFault(AvroFault.BAD_AVRO, "negative length")
    if end > len(data):
        raise IndexError
    return data[at:end], end


def read_fixed(data: Bytes, at: int, size: int) -> tuple[Bytes, int]:
    if at + size > len(data):
        raise IndexError
    return data[at : at + size], at + size


def read_text(data: Bytes, at: int) -> tuple[str, int]:
    value, end = read_sized(data, at)
    try:
        return str(value, "utf-8"), end
    except UnicodeDecodeError:
        raise RecordFault(AvroFault.INVALID_UTF8, "string that is not UTF-8") from None


def read_symbol(data: Bytes, at: int, symbols: tuple[str, ...]) -> tuple[str, int]:
    index, at = read_long(data, at)
    if not 0 <= index < len(symbols):
        raise RecordFault(AvroFault.BAD_AVRO, "enum symbol that the schema does not have")
    return symbols[index], at


def read_branch(data: Bytes, at: int, count: int, *, one_byte: bool = False) -> tuple[int, int]:
    """Of a union. `one_byte`: no longer spelling of a number is taken, as `nested.NullableColumn` does."""
    place, end = read_long(data, at)
    if not 0 <= place < count or (one_byte and end != at + 1):
        raise RecordFault(AvroFault.BAD_AVRO, "union branch that the schema does not have")
    return place, end


def block_size(data: Bytes, at: int) -> tuple[int, int]:
    """Items of the next block. Every item takes a byte at least, so the bytes left bound their number."""
    count, at = read_long(data, at)
    if count < 0:
        count = -count
        _, at = read_long(data, at)
    if count > len(data) - at:
        raise RecordFault(AvroFault.BAD_AVRO, "more items than bytes")
    return count, at


PRIMITIVES: Mapping[str, Reader] = {
    "null": _read_null,
    "boolean": _read_boolean,
    "int": _read_int,
    "long": read_long,
    "float": _read_float,
    "double": _read_double,
    "bytes": read_sized,
    "string": read_text,
}

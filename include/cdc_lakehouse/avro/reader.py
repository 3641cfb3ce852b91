"""Readers of single values, strict where fastavro is lenient.

fastavro 1.13 takes union branch -1 for the last one, int values of 64 bits and varints of any length
for good; a corrupt record must not decode. A reader is compiled once per type and gives raw values:
ints and bytes, never dates or Decimals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import Struct, error
from typing import Any

from cdc_lakehouse.avro.faults import AvroFault, RecordFault

Reader = Callable[[bytes, int], tuple[Any, int]]
"""(bytes, place) -> (value, place after it). `IndexError` when the bytes end too early."""

_FLOAT, _DOUBLE = Struct("<f"), Struct("<d")
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1
_LONG_BYTES = 10


def compile_reader(node: Any, named: Mapping[str, Any]) -> Reader:
    """`node` comes from `admit`, so it is sound, finite and not recursive."""
    if isinstance(node, list):
        return _union([compile_reader(branch, named) for branch in node])
    kind = node["type"] if isinstance(node, dict) else node
    if isinstance(kind, (dict, list)):
        return compile_reader(kind, named)
    match kind:
        case "record" | "error":
            fields = [(field["name"], compile_reader(field["type"], named)) for field in node["fields"]]
            reader = _record(fields)
        case "array":
            reader = _array(compile_reader(node["items"], named))
        case "map":
            reader = _map(compile_reader(node["values"], named))
        case "enum":
            reader = _enum(node["symbols"])
        case "fixed":
            reader = _fixed(node["size"])
        case _:
            reader = _PRIMITIVES[kind] if kind in _PRIMITIVES else compile_reader(named[kind], named)
    return reader


def read_long(data: bytes, at: int) -> tuple[int, int]:
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


def _read_int(data: bytes, at: int) -> tuple[int, int]:
    first = data[at]
    if first < 0x80:
        return (first >> 1) ^ -(first & 1), at + 1
    value, end = read_long(data, at)
    if not _INT_MIN <= value <= _INT_MAX:
        raise RecordFault(AvroFault.BAD_AVRO, "int of more than 32 bits")
    return value, end


def _read_null(_data: bytes, at: int) -> tuple[None, int]:
    return None, at


def _read_boolean(data: bytes, at: int) -> tuple[bool, int]:
    byte = data[at]
    if byte > 1:
        raise RecordFault(AvroFault.BAD_AVRO, "boolean that is neither 0 nor 1")
    return byte == 1, at + 1


def _read_float(data: bytes, at: int) -> tuple[float, int]:
    return _FLOAT.unpack_from(data, at)[0], at + 4


def _read_double(data: bytes, at: int) -> tuple[float, int]:
    return _DOUBLE.unpack_from(data, at)[0], at + 8


def _read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = read_long(data, at)
    end = at + size
    if size < 0:
        raise RecordFault(AvroFault.BAD_AVRO, "negative length")
    if end > len(data):
        raise IndexError
    return data[at:end], end


def _read_string(data: bytes, at: int) -> tuple[str, int]:
    value, end = _read_bytes(data, at)
    try:
        return value.decode(), end
    except UnicodeDecodeError:
        raise RecordFault(AvroFault.INVALID_UTF8, "string that is not UTF-8") from None


_PRIMITIVES: Mapping[str, Reader] = {
    "null": _read_null,
    "boolean": _read_boolean,
    "int": _read_int,
    "long": read_long,
    "float": _read_float,
    "double": _read_double,
    "bytes": _read_bytes,
    "string": _read_string,
}


def _record(fields: list[tuple[str, Reader]]) -> Reader:
    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        row: dict[str, Any] = {}
        try:
            for name, read_field in fields:
                row[name], at = read_field(data, at)
        except RecordFault as fault:
            raise fault.at(name) from None
        except (IndexError, error):
            raise RecordFault(AvroFault.TRUNCATED, f"{name}: the bytes end here") from None
        return row, at

    return read


def _union(branches: list[Reader]) -> Reader:
    nulls = [branch is _read_null for branch in branches]
    if len(branches) == 2 and nulls.count(True) == 1:  # nearly every column: nullable, either order
        return _nullable(branches[nulls.index(False)], null_byte=2 * nulls.index(True))

    def read(data: bytes, at: int) -> tuple[Any, int]:
        branch, at = read_long(data, at)
        if not 0 <= branch < len(branches):
            raise RecordFault(AvroFault.BAD_AVRO, "union branch that the schema does not have")
        return branches[branch](data, at)

    return read


def _nullable(read_value: Reader, *, null_byte: int) -> Reader:
    value_byte = 2 - null_byte

    def read(data: bytes, at: int) -> tuple[Any, int]:
        branch = data[at]
        if branch == value_byte:
            return read_value(data, at + 1)
        if branch == null_byte:
            return None, at + 1
        raise RecordFault(AvroFault.BAD_AVRO, "union branch that the schema does not have")

    return read


def _enum(symbols: list[str]) -> Reader:
    def read(data: bytes, at: int) -> tuple[str, int]:
        index, at = read_long(data, at)
        if not 0 <= index < len(symbols):
            raise RecordFault(AvroFault.BAD_AVRO, "enum symbol that the schema does not have")
        return symbols[index], at

    return read


def _fixed(size: int) -> Reader:
    def read(data: bytes, at: int) -> tuple[bytes, int]:
        if at + size > len(data):
            raise IndexError
        return data[at : at + size], at + size

    return read


def _block_size(data: bytes, at: int) -> tuple[int, int]:
    """Items of the next block. Every item takes a byte at least, so the bytes left bound their number."""
    count, at = read_long(data, at)
    if count < 0:
        count = -count
        _, at = read_long(data, at)
    if count > len(data) - at:
        raise RecordFault(AvroFault.BAD_AVRO, "more items than bytes")
    return count, at


def _array(read_item: Reader) -> Reader:
    def read(data: bytes, at: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        while True:
            count, at = _block_size(data, at)
            if count == 0:
                return items, at
            for _ in range(count):
                item, at = read_item(data, at)
                items.append(item)

    return read


def _map(read_value: Reader) -> Reader:
    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        entries: dict[str, Any] = {}
        while True:
            count, at = _block_size(data, at)
            if count == 0:
                return entries, at
            for _ in range(count):
                key, at = _read_string(data, at)
                entries[key], at = read_value(data, at)

    return read

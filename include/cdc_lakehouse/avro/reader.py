"""Readers of single values: strict, raw.

A reader is compiled once per wire plan and gives ints and bytes, never dates or Decimals. It judges as
the columns do (`columnar`), and says why.
"""

from __future__ import annotations

from struct import error
from typing import Any

from cdc_lakehouse.avro.faults import AvroFault, RecordFault
from cdc_lakehouse.avro.json_text import json_reader
from cdc_lakehouse.avro.primitives import (
    PRIMITIVES,
    Bytes,
    Reader,
    block_size,
    read_branch,
    read_fixed,
    read_symbol,
    read_text,
)
from cdc_lakehouse.avro.widths import Budget, is_wide, width
from cdc_lakehouse.avro.wire import NULL, Wire


def compile_reader(wire: Wire, budget: Budget) -> Reader:
    """Whoever reads a record with it begins the budget first."""
    inner = () if wire.kind == "recursive" else tuple(compile_reader(part, budget) for part in wire.parts)
    match wire.kind:
        case "record":
            reader = _record(list(zip(wire.names, inner, strict=True)))
        case "nullable":
            reader = _nullable(inner[0], null_byte=2 * wire.size)
        case "sole":
            reader = _sole(inner[0])
        case "union":
            reader = _union(wire.parts, inner)
        case "array":
            reader = _array(inner[0], _sizes(wire, budget))
        case "map":
            reader = _map(inner[0], _sizes(wire, budget))
        case "enum":
            reader = _enum(wire.names)
        case "fixed":
            reader = _fixed(wire.size)
        case "recursive":
            reader = json_reader(wire)
        case _:
            reader = PRIMITIVES[wire.kind]
    return reader


def _record(fields: list[tuple[str, Reader]]) -> Reader:
    def read(data: Bytes, at: int) -> tuple[dict[str, Any], int]:
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


def _nullable(read_value: Reader, *, null_byte: int) -> Reader:
    """Nearly every column."""
    value_byte = 2 - null_byte

    def read(data: Bytes, at: int) -> tuple[Any, int]:
        branch = data[at]
        if branch == value_byte:
            return read_value(data, at + 1)
        if branch == null_byte:
            return None, at + 1
        raise RecordFault(AvroFault.BAD_AVRO, "union branch that the schema does not have")

    return read


def _sole(read_value: Reader) -> Reader:
    def read(data: Bytes, at: int) -> tuple[Any, int]:
        _, at = read_branch(data, at, 1)
        return read_value(data, at)

    return read


def _union(branches: tuple[Wire, ...], readers: tuple[Reader, ...]) -> Reader:
    """Members as `nested.UnionColumn` names them; None for null."""
    kept = [place for place, branch in enumerate(branches) if branch != NULL]
    names = {place: f"member{member}" for member, place in enumerate(kept)}
    nothing = dict.fromkeys(names.values())

    def read(data: Bytes, at: int) -> tuple[Any, int]:
        place, at = read_branch(data, at, len(readers))
        value, at = readers[place](data, at)
        return ({**nothing, names[place]: value} if place in names else None), at

    return read


def _enum(symbols: tuple[str, ...]) -> Reader:
    def read(data: Bytes, at: int) -> tuple[str, int]:
        return read_symbol(data, at, symbols)

    return read


def _fixed(size: int) -> Reader:
    def read(data: Bytes, at: int) -> tuple[Bytes, int]:
        return read_fixed(data, at, size)

    return read


def _sizes(wire: Wire, budget: Budget) -> Reader:
    """Reader of the number of items of a block."""
    values, wide = width(wire.parts[0]), is_wide(wire)

    def read(data: Bytes, at: int) -> tuple[int, int]:
        count, at = block_size(data, at)
        if count:
            budget.take(count * values, wide=wide)
        return count, at

    return read


def _array(read_item: Reader, read_size: Reader) -> Reader:
    def read(data: Bytes, at: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        while True:
            count, at = read_size(data, at)
            if count == 0:
                return items, at
            for _ in range(count):
                item, at = read_item(data, at)
                items.append(item)

    return read


def _map(read_value: Reader, read_size: Reader) -> Reader:
    def read(data: Bytes, at: int) -> tuple[dict[str, Any], int]:
        entries: dict[str, Any] = {}
        while True:
            count, at = read_size(data, at)
            if count == 0:
                return entries, at
            for _ in range(count):
                key, at = read_text(data, at)
                entries[key], at = read_value(data, at)

    return read

"""Values of recursive types, as JSON text: no type of a column has their shape.

Fields keep their names, bytes and fixed are base64, a union is an object of its members as elsewhere
(`nested.UnionColumn`), maps are objects, floats that JSON does not know are the texts `NaN`, `Infinity`
and `-Infinity`. Logical types are not applied.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from functools import lru_cache
from math import isfinite

from cdc_lakehouse.avro.faults import AvroFault, RecordFault
from cdc_lakehouse.avro.output import count_output
from cdc_lakehouse.avro.primitives import (
    PRIMITIVES,
    Bytes,
    block_size,
    read_branch,
    read_fixed,
    read_sized,
    read_symbol,
    read_text,
)
from cdc_lakehouse.avro.wire import NULL, Wire

MAX_LEVELS = 32
"""Of the recursion, in the data."""
_MAX_NESTING = 3 * MAX_LEVELS
"""Records, lists, maps and unions inside each other: what Python's own stack bears."""
_FREE_TEXT, _TEXT_PER_BYTE, _MOST_TEXT = 1_024, 100, 64_000_000
"""Names of fields and symbols can make very long texts of few bytes."""


class _Run:
    """One value on its way into text."""

    __slots__ = ("data", "levels", "nesting", "size", "start", "text")

    def __init__(self, data: Bytes, start: int) -> None:
        self.data, self.start = data, start
        self.levels = self.nesting = self.size = 0
        self.text: list[str] = []

    def put(self, text: str, at: int) -> None:
        self.size += len(text)
        if self.size > min(_FREE_TEXT + _TEXT_PER_BYTE * (at - self.start), _MOST_TEXT):
            raise RecordFault(AvroFault.TOO_LARGE, f"JSON text of more than {_TEXT_PER_BYTE} times its bytes")
        self.text.append(text)

    def enter(self) -> None:
        self.nesting += 1
        if self.nesting > _MAX_NESTING:
            raise RecordFault(AvroFault.TOO_LARGE, f"data nested deeper than {_MAX_NESTING}")

    def leave(self) -> None:
        self.nesting -= 1


Write = Callable[[_Run, int], int]
"""From the place of a value to the place after it."""


@lru_cache(maxsize=1024)
def json_reader(wire: Wire) -> Callable[[Bytes, int], tuple[str, int]]:
    """Of a `recursive`. Raises what the readers of `reader` raise."""
    records: list[Write] = []
    records += [_writer(record, records) for record in wire.parts]

    def read(data: Bytes, at: int) -> tuple[str, int]:
        run = _Run(data, at)
        end = records[0](run, at)
        count_output(run.size)
        return "".join(run.text), end

    return read


def _writer(wire: Wire, records: list[Write]) -> Write:
    inner = [_writer(part, records) for part in wire.parts]
    match wire.kind:
        case "record":
            write = _record(wire.names, inner)
        case "nullable" | "sole" | "union":
            write = _union(wire, inner)
        case "array":
            write = _array(inner[0])
        case "map":
            write = _map(inner[0])
        case "again":
            write = _again(records, wire.size)
        case _:
            write = _leaf(wire)
    return write


def _leaf(wire: Wire) -> Write:
    if wire.kind in ("bytes", "fixed"):

        def write(run: _Run, at: int) -> int:
            if wire.kind == "bytes":
                value, at = read_sized(run.data, at)
            else:
                value, at = read_fixed(run.data, at, wire.size)
            run.put(f'"{b64encode(value).decode()}"', at)
            return at

        return write

    def write_plain(run: _Run, at: int) -> int:
        value, at = (
            read_symbol(run.data, at, wire.names)
            if wire.kind == "enum"
            else PRIMITIVES[wire.kind](run.data, at)
        )
        run.put(_told(value), at)
        return at

    return write_plain


def _told(value: object) -> str:
    if isinstance(value, float) and not isfinite(value):
        return json.dumps(json.dumps(value))
    return json.dumps(value, ensure_ascii=False)


def _record(names: tuple[str, ...], inner: list[Write]) -> Write:
    before = [("{" if place == 0 else ",") + json.dumps(name) + ":" for place, name in enumerate(names)]
    fields = list(zip(before, inner, strict=True))
    end = "}" if fields else "{}"

    def write(run: _Run, at: int) -> int:
        run.enter()
        for text, write_field in fields:
            run.put(text, at)
            at = write_field(run, at)
        run.put(end, at)
        run.leave()
        return at

    return write


def _union(wire: Wire, inner: list[Write]) -> Write:
    """Null, the value where there is one other branch, else an object of members."""
    if wire.kind == "nullable":
        branches = [None, inner[0]] if wire.size == 0 else [inner[0], None]
    else:
        branches = [None if part == NULL else write for part, write in zip(wire.parts, inner, strict=True)]
    kept = [write for write in branches if write is not None]
    alone = len(kept) == 1
    strict_byte = wire.kind == "nullable"

    def write(run: _Run, at: int) -> int:
        place, at = read_branch(run.data, at, len(branches), one_byte=strict_byte)
        write_value = branches[place]
        if write_value is None:
            run.put("null", at)
            return at
        run.enter()
        if alone:
            at = write_value(run, at)
        else:
            for member, each in enumerate(kept):
                run.put(f'{"," if member else "{"}"member{member}":', at)
                if each is write_value:
                    at = each(run, at)
                else:
                    run.put("null", at)
            run.put("}", at)
        run.leave()
        return at

    return write


def _array(write_item: Write) -> Write:
    def write(run: _Run, at: int) -> int:
        run.enter()
        separator = "["
        while True:
            count, at = block_size(run.data, at)
            if count == 0:
                run.put("]" if separator == "," else "[]", at)
                run.leave()
                return at
            for _ in range(count):
                run.put(separator, at)
                at = write_item(run, at)
                separator = ","

    return write


def _map(write_value: Write) -> Write:
    def write(run: _Run, at: int) -> int:
        run.enter()
        seen: set[str] = set()
        while True:
            count, at = block_size(run.data, at)
            if count == 0:
                run.put("}" if seen else "{}", at)
                run.leave()
                return at
            for _ in range(count):
                key, at = read_text(run.data, at)
                if key in seen:
                    raise RecordFault(AvroFault.BAD_AVRO, "map with a key twice, inside a recursive type")
                run.put(("," if seen else "{") + json.dumps(key, ensure_ascii=False) + ":", at)
                seen.add(key)
                at = write_value(run, at)

    return write


def _again(records: list[Write], place: int) -> Write:
    def write(run: _Run, at: int) -> int:
        run.levels += 1
        if run.levels >= MAX_LEVELS:
            raise RecordFault(AvroFault.TOO_LARGE, f"recursive data of more than {MAX_LEVELS} levels")
        at = records[place](run, at)
        run.levels -= 1
        return at

    return write

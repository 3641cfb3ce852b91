"""Runs of fields that hold the same bytes in every row: what a source says of itself in each event.

Version, connector, database, schema and table of a Debezium `source` hardly ever change within a batch.
A run of such fields is one comparison of bytes for all rows, and one value that is decoded once:

    row 0   0a 33 2e 37 2e 30 14 70 6f …        "3.7.0", "postgresql", …
    row 1   0a 33 2e 37 2e 30 14 70 6f …        the same 17 bytes: two columns are done

Whether it pays to compare is guessed from a few rows; that all rows agree is then proved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from cdc_lakehouse.avro.cursors import Cursors
from cdc_lakehouse.avro.leaves import Column
from cdc_lakehouse.avro.memory import WIDEST, Memory
from cdc_lakehouse.avro.wire import Wire

LEAST_ROWS = 256
"""Fewer rows are read sooner than compared."""
_LEAST_BYTES = 3
_SAMPLE = 7
"""Rows beside the first one; a prime, as events repeat in even rhythms."""
_FEW = 32
_BYTES_OF = {"null": 0, "boolean": 1, "float": 4, "double": 8}


@dataclass(frozen=True, slots=True)
class Run:
    """Fields one after another, by the place where each ends in the bytes that all rows share."""

    data: bytes
    ends: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.ends)

    def parts(self) -> list[bytes]:
        return [self.data[a:b] for a, b in zip((0, *self.ends), self.ends, strict=False)]


def likely_run(wires: Sequence[Wire], cursors: Cursors) -> Run | None:
    """The longest that the sampled rows agree on; None when it is too short to pay."""
    run = Run(_window(cursors, 0), ())
    # Most fields differ in two rows already. The others are for those with few values, such as a status:
    # comparing all rows in vain costs as much as reading the field.
    for row in _sampled(len(cursors)):
        run = _shared(wires, run.data, _window(cursors, row))
        if len(run.data) < _LEAST_BYTES:
            return None
    return run


@lru_cache(maxsize=8)
def _sampled(count: int) -> tuple[int, ...]:
    return tuple(count - 1 - count * step // _SAMPLE for step in range(_SAMPLE))


def _shared(wires: Sequence[Wire], first: bytes, other: bytes) -> Run:
    ends: list[int] = []
    end = 0
    for wire in wires:
        found = _end(wire, first, end)
        if found is None or found > len(first) or other[end:found] != first[end:found]:
            break
        end = found
        ends.append(end)
    return Run(first[:end], tuple(ends))


def holds(run: Run, cursors: Cursors) -> bool:
    """Whether every row that is not bad has these bytes."""
    size = len(run.data)
    found = cursors.memory.pieces(size)[cursors.at].view(np.uint8)
    wanted = _times(run.data, len(cursors))
    same = found == wanted
    if same.all():
        return True
    other_bytes = np.flatnonzero(~same)
    if len(other_bytes) > size * max(_FEW, len(cursors) // _FEW):
        return False  # the rows differ: that is no damage, and sorting out which ones is dear
    others = np.unique(other_bytes // size)
    others = others[cursors.at[others] <= cursors.end[others]]
    return len(others) == 0 or cursors.expose(others)


@lru_cache(maxsize=64)
def repeated(column: Column, data: bytes, count: int) -> pa.Array | None:
    """The value that these bytes are, `count` times; None when they are no sound value.

    Batches are alike, so the same array serves many of them.
    """
    cursors = Cursors(Memory(pa.py_buffer(data)), np.zeros(1, np.int64), np.full(1, len(data), np.int64))
    value = column.read(cursors)
    if not cursors.sound().all():
        return None
    return value.take(pa.array(np.zeros(count, np.int32)))


@lru_cache(maxsize=16)
def _times(data: bytes, count: int) -> np.ndarray:
    return np.frombuffer(data * count, np.uint8)


def _window(cursors: Cursors, row: int) -> bytes:
    at = int(cursors.at[row])
    return cursors.memory.bytes[at : min(at + WIDEST, int(cursors.end[row]))].tobytes()


def _end(wire: Wire, data: bytes, at: int) -> int | None:
    """Where a value ends that begins at `at`; None for what is never repeated or ends behind the bytes."""
    kind: Any = wire.kind
    if kind == "nullable":
        branch = data[at : at + 1]
        if branch == bytes([2 * wire.size]):
            return at + 1
        return _end(wire.parts[0], data, at + 1) if branch else None
    if kind in _BYTES_OF:
        return at + _BYTES_OF[kind]
    if kind not in ("int", "long", "enum", "string", "bytes"):
        return None
    number, shift = 0, 0
    while at < len(data):
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            # Twice the length, as lengths are not negative; a bad one ends nowhere.
            return at + (number >> 1) if kind in ("string", "bytes") else at
    return None

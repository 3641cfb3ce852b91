"""Many records of one writer schema at once, column by column: the heart of the decoder.

Decoding record by record costs Python objects and branches per value. Here one numpy array holds, for
every row of a batch, the place in the batch's bytes where its next value begins (`cursors`). For each
field of the schema, in wire order, the values of *all* rows are read with a handful of array
operations, and all cursors move on. A `long` of two rows, for example, whose bytes are

    row 0   96 01 …        row 1   05 08 …

is one load of 8 bytes per row. The first byte without its top bit ends the number: byte 1 in row 0,
byte 0 in row 1, so the cursors move by 2 and by 1. The lower seven bits of those bytes, lowest first,
are 0x16 | 0x01 << 7 = 150 and 5. Un-zigzagged (even numbers are halved, odd ones turn negative) that is
75 and -3 (`varints`). Text becomes Arrow offsets over the same bytes (`spans`); the branch byte of a
nullable type becomes the validity (`nested`); items of arrays are found step by step (`repeated`).

Nothing raises for a bad row, and nothing it says is believed: lengths are cut at the row's end, and a
row that is wrong in itself is moved behind its end, where it stays (`cursors`). A row is good exactly
when its cursor stands at its end after the last field. The strict reader of single records (`reader`)
judges the same, for every input; it is asked *why* a row is bad, and it reads what does not pay here.
Types that contain themselves have no column; theirs reads row by row and gives text (`recursive`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from cdc_lakehouse.avro.cursors import Cursors
from cdc_lakehouse.avro.leaves import (
    BooleanColumn,
    Column,
    DoubleColumn,
    EnumColumn,
    FloatColumn,
    IntColumn,
    LongColumn,
    NullColumn,
)
from cdc_lakehouse.avro.memory import Memory
from cdc_lakehouse.avro.nested import NullableColumn, RecordColumn, SoleColumn, UnionColumn
from cdc_lakehouse.avro.output import count_output
from cdc_lakehouse.avro.recursive import RecursiveColumn
from cdc_lakehouse.avro.repeated import ArrayColumn, Limit, MapColumn
from cdc_lakehouse.avro.spans import BytesColumn, FixedColumn, StringColumn
from cdc_lakehouse.avro.suspects import Strict, Suspects
from cdc_lakehouse.avro.widths import MOST_BYTES_AS_COLUMNS, Share, is_wide, least_output, width
from cdc_lakehouse.avro.wire import Wire

PIECE_BYTES, PIECE_BYTES_WITH_LISTS = 8 * 1024 * 1024, 2 * 1024 * 1024
"""Payload decoded at a time. A byte can be an item, and an item takes some hundred bytes on the way."""

_PRIMITIVES: dict[str, Column] = {
    "null": NullColumn(),
    "boolean": BooleanColumn(),
    "int": IntColumn(),
    "long": LongColumn(),
    "float": FloatColumn(),
    "double": DoubleColumn(),
    "bytes": BytesColumn(),
    "string": StringColumn(),
}


@dataclass(frozen=True, slots=True)
class Projection:
    """Which fields of a record are wanted, and which of theirs; the others are checked and skipped."""

    fields: tuple[tuple[str, Projection | None], ...]

    def wants(self, name: str) -> bool:
        return any(name == field for field, _ in self.fields)

    def inner(self, name: str) -> Projection | None:
        return dict(self.fields).get(name)


@lru_cache(maxsize=4096)
def column_of(wire: Wire, share: Share, projection: Projection | None = None) -> Column:
    """Compiled once per process. A projection looks through nullable types."""
    column: Column
    match wire.kind:
        case "record":
            fields = zip(wire.names, wire.parts, strict=True)
            column = RecordColumn(
                [_field(name, part, share, projection) for name, part in fields], wire.parts
            )
        case "nullable":
            column = NullableColumn(column_of(wire.parts[0], share, projection), null_place=wire.size)
        case "sole":
            column = SoleColumn(column_of(wire.parts[0], share, projection))
        case "recursive":
            column = RecursiveColumn(wire)
        case "union":
            column = UnionColumn([column_of(part, share) for part in wire.parts])
        case "array":
            item = column_of(wire.parts[0], share.inside())
            column = ArrayColumn(item, _limit(wire, share), width=width(wire.parts[0]))
        case "map":
            item, text = column_of(wire.parts[0], share.inside()), _PRIMITIVES["string"]
            column = MapColumn(text, item, _limit(wire, share), width=width(wire.parts[0]))
        case "enum":
            column = EnumColumn(wire.names)
        case "fixed":
            column = FixedColumn(wire.size)
        case _:
            column = _PRIMITIVES[wire.kind]
    return column


def _field(name: str, part: Wire, share: Share, projection: Projection | None) -> tuple[str, Column, bool]:
    if projection is None:
        return name, column_of(part, share), True
    return name, column_of(part, share, projection.inner(name)), projection.wants(name)


def _limit(wire: Wire, share: Share) -> Limit | None:
    return Limit(width(wire.parts[0]), share) if is_wide(wire) else None


@dataclass(frozen=True, slots=True)
class Reader:
    """Of payloads of one wire plan."""

    column: Column
    strict: Strict
    repeats: bool
    """The type has lists, or recursive values."""
    least_output: int

    @classmethod
    def of(cls, wire: Wire, projection: Projection | None = None) -> Reader:
        column = column_of(wire, Share.of(wire), projection)
        return cls(column, Strict.of(wire), _repeats(wire), least_output(wire))

    def read(self, memory: Memory, start: np.ndarray, end: np.ndarray) -> tuple[pa.Array, np.ndarray]:
        """The values of the payloads `start` to `end`, in rising order, and a mask of the sound ones.

        What stands at the other rows means nothing.
        """
        count_output(self.least_output * len(start))
        values, sound = [], []
        for piece in self._pieces(start, end):
            suspects = Suspects(self.strict, memory, start[piece], end[piece])
            cursors = Cursors(memory, start[piece], end[piece], bad=suspects.bad)
            if self.repeats and (long := end[piece] - start[piece] > MOST_BYTES_AS_COLUMNS).any():
                cursors.fail(long)
            values.append(self.column.read(cursors))
            sound.append(cursors.sound())
        if len(values) == 1:
            return values[0], sound[0]
        return pa.concat_arrays(values), np.concatenate(sound)

    def _pieces(self, start: np.ndarray, end: np.ndarray) -> list[slice]:
        before = np.cumsum(end - start)
        size = PIECE_BYTES_WITH_LISTS if self.repeats else PIECE_BYTES
        if len(start) == 0 or before[-1] <= size:
            return [slice(0, len(start))]
        cuts = (np.flatnonzero(np.diff(before // size)) + 1).tolist()
        return [slice(a, b) for a, b in zip([0, *cuts], [*cuts, len(start)], strict=True)]


def _repeats(wire: Wire) -> bool:
    return wire.kind in ("array", "map", "recursive") or any(map(_repeats, wire.parts))

"""Columns of single numbers: null, boolean, int, long, float, double, enum."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa

from cdc_lakehouse.avro.cursors import Cursors
from cdc_lakehouse.avro.spread import Spread, numbers_array
from cdc_lakehouse.avro.varints import read_ints, read_longs, skip_longs


class Column(Protocol):
    """One type of a wire plan, compiled. Columns hold no state of a batch and are shared."""

    @property
    def type(self) -> pa.DataType:
        """Of what `read` returns: raw values, no logical types."""

    def read(self, cursors: Cursors, spread: Spread | None = None) -> pa.Array:
        """The values at the cursors, which move on; with a `spread` laid out over its rows."""

    def skip(self, cursors: Cursors) -> None:
        """Moves on. Fails the same rows as reading."""

    def __hash__(self) -> int: ...


class NullColumn:
    type = pa.null()

    def read(self, cursors: Cursors, spread: Spread | None = None) -> pa.Array:
        return pa.nulls(len(cursors) if spread is None else len(spread))

    def skip(self, cursors: Cursors) -> None:
        """Takes no bytes."""


class BooleanColumn:
    type = pa.bool_()

    def read(self, cursors: Cursors, spread: Spread | None = None) -> pa.Array:
        values = self._bytes(cursors)
        if spread is not None:
            values = spread.numbers(values)
        bits = pa.py_buffer(np.packbits(values == 1, bitorder="little"))
        return pa.Array.from_buffers(
            self.type, len(values), [None if spread is None else spread.validity, bits]
        )

    def skip(self, cursors: Cursors) -> None:
        self._bytes(cursors)

    @staticmethod
    def _bytes(cursors: Cursors) -> np.ndarray:
        values = cursors.byte()
        cursors.move(1)
        if len(values) and values.max() > 1:
            cursors.fail(values > 1)
        return values


class IntColumn:
    type = pa.int32()

    def read(self, cursors: Cursors, spread: Spread | None = None) -> pa.Array:
        return numbers_array(self.type, read_ints(cursors), spread)

    def skip(self, cursors: Cursors) -> None:
        read_ints(cursors)


class LongColumn:
    type = pa.int64()

    def read(self, cursors: Cursors, spread: Spread | None = None) -> pa.Array:
        return numbers_array(self.type, read_longs(cursors), spread)

    def skip(self, cursors: Cursors) -> None:
        skip_longs(cursors)


class FloatColumn:
    type = pa.float32()

    def read(self, cursors: Cursors, spread: Spread | None = None) -> pa.Array:
        values = cursors.word().astype("<u4").view("<f4")
        cursors.move(4)
        return numbers_array(self.type, values, spread)

    def skip(self, cursors: Cursors) -> None:
        cursors.move(4)


class DoubleColumn:
    type = pa.float64()

    def read(self, cursors: Cursors, spread: Spread | None = None) -> pa.Array:
        values = cursors.word().view("<f8")
        cursors.move(8)
        return numbers_array(self.type, values, spread)

    def skip(self, cursors: Cursors) -> None:
        cursors.move(8)


class EnumColumn:
    """Symbols as text."""

    type = pa.string()

    def __init__(self, symbols: tuple[str, ...]) -> None:
        self._last = len(symbols) - 1
        # Bad rows take the first one, which an enum without symbols lacks.
        self._symbols = pa.array(symbols or ("",), pa.string())

    def read(self, cursors: Cursors, spread: Spread | None = None) -> pa.Array:
        places = self._places(cursors)
        return self._symbols.take(numbers_array(pa.int64(), places, spread))

    def skip(self, cursors: Cursors) -> None:
        self._places(cursors)

    def _places(self, cursors: Cursors) -> np.ndarray:
        places = read_longs(cursors)
        if len(places) and (places.max() > self._last or places.min() < 0):
            wrong = (places > self._last) | (places < 0)
            cursors.fail(wrong)
            places[wrong] = 0
        return places

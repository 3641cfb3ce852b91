"""How much a list may become: an item of one byte can be hundreds of values.

A null in a list of nullable records of 500 fields is a byte, and 500 values in a column. So lists of
wide items have a budget per record, in values. Lists of narrow ones cannot outgrow their bytes much.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from threading import local

import numpy as np

from cdc_lakehouse.avro.faults import AvroFault, RecordFault
from cdc_lakehouse.avro.output import count_output
from cdc_lakehouse.avro.wire import Wire

_NARROW = 16
_FREE, _PER_BYTE = 16_384, 16
"""Values that a record may have in wide lists: so many, and so many for each of its bytes."""
_MOST = 4_000_000
"""Values that a record may have in all its lists, however long it is."""
MOST_BYTES_AS_COLUMNS = (_MOST - _FREE) // (2 * _PER_BYTE)
"""Longer records with lists are read one by one, where their values are counted. What is shorter cannot
have more: an item takes a byte at least, and is a value of a wide list or up to sixteen of a narrow one."""
BYTES_PER_VALUE = 8
"""Approximate memory of a value in a column; text is counted by its bytes on the wire."""
_BYTES_PER_OBJECT = 64
"""Approximate memory of a value as a Python object."""
_SYMBOL_PER_VALUE = 8
"""Characters of a symbol that count as one value: a byte on the wire can expand to a thousand."""


@lru_cache(maxsize=4096)
def width(wire: Wire) -> int:
    """Values that one of this type takes in a column at least."""
    match wire.kind:
        case "record":
            return max(1, sum(map(width, wire.parts)))
        case "union":
            return 1 + sum(map(width, wire.parts))
        case "nullable" | "sole":
            return width(wire.parts[0])
        case "recursive":
            return _NARROW  # its text
        case "enum":
            return max(1, longest_symbol(wire) // _SYMBOL_PER_VALUE)
        case _:
            return 1


def is_wide(wire: Wire) -> bool:
    """A list whose values are counted."""
    return wire.kind in ("array", "map") and width(wire.parts[0]) > _NARROW


def longest_symbol(wire: Wire) -> int:
    """Return the characters of the longest symbol of an enum."""
    return max(map(len, wire.names), default=0)


@lru_cache(maxsize=4096)
def least_output(wire: Wire, *, objects: bool = False) -> int:
    """Return the bytes of a record in columns, or as objects, without its lists and its texts."""
    return (_BYTES_PER_OBJECT if objects else BYTES_PER_VALUE) * width(wire) + _longest_symbols(wire)


def _longest_symbols(wire: Wire) -> int:
    if wire.kind == "enum":
        return longest_symbol(wire)
    return 0 if wire.kind in ("array", "map") else sum(map(_longest_symbols, _parts(wire)))


class Budget(local):
    """What is left to the one record that a thread reads."""

    wide = 0
    """Values of wide lists that are left."""
    values = 0
    """Values of all lists that are left."""

    def begin(self, size: int) -> None:
        self.wide, self.values = _FREE + _PER_BYTE * size, _MOST

    def take(self, values: int, *, wide: bool) -> None:
        """Count values of a list that are about to be read. Raises `RecordFault` beyond the budget."""
        self.values -= values
        if wide:
            self.wide -= values
        if self.wide < 0 or self.values < 0:
            raise RecordFault(AvroFault.TOO_LARGE, "lists of more values than their bytes are good for")
        count_output(_BYTES_PER_OBJECT * values)


@dataclass(frozen=True, slots=True)
class Share:
    """Of that budget, what one list of a column may take whatever the others of its record take."""

    free: int
    per_byte: float

    @classmethod
    def of(cls, root: Wire) -> Share:
        """For lists that stand in no other."""
        return cls(_FREE // max(1, _outermost(root)), _PER_BYTE / max(1, _depth(root)))

    def inside(self) -> Share:
        """For lists of lists: there may be any number of them."""
        return Share(0, self.per_byte)

    def exceeded(self, values: np.ndarray, size: np.ndarray) -> np.ndarray:
        found: np.ndarray = values > self.free + self.per_byte * size
        return found


def _outermost(wire: Wire) -> int:
    return 1 if wire.kind in ("array", "map") else sum(map(_outermost, _parts(wire)))


def _depth(wire: Wire) -> int:
    """Bytes of a list are bytes of the lists around it too."""
    inner = max(map(_depth, _parts(wire)), default=0)
    return inner + (wire.kind in ("array", "map"))


def _parts(wire: Wire) -> tuple[Wire, ...]:
    return () if wire.kind == "recursive" else wire.parts

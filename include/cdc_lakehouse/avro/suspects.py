"""Rows that differ from all others of a batch are looked at one by one, a few, as soon as they stand out.

Mostly they are bad: what a broken row holds behind the break is noise. A row that is known to be bad is
not looked at again, but one that only seems odd takes the short ways from all the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import error

import numpy as np

from cdc_lakehouse.avro.faults import RecordFault
from cdc_lakehouse.avro.memory import Memory
from cdc_lakehouse.avro.primitives import Reader
from cdc_lakehouse.avro.reader import compile_reader
from cdc_lakehouse.avro.widths import Budget
from cdc_lakehouse.avro.wire import Wire

MOST = 24
"""Per batch: one costs as much as a hundred rows in columns."""


@dataclass(frozen=True, slots=True)
class Strict:
    """The reader of single records of a wire plan, asked for its verdict only."""

    reader: Reader
    budget: Budget

    @classmethod
    def of(cls, wire: Wire) -> Strict:
        budget = Budget()
        return cls(compile_reader(wire, budget), budget)

    def takes(self, payload: bytes) -> bool:
        self.budget.begin(len(payload))
        try:
            _, end = self.reader(payload, 0)
        except (RecordFault, IndexError, error):
            return False
        return end == len(payload)


class Suspects:
    """Of the payloads `start` to `end` of a batch."""

    def __init__(self, strict: Strict, memory: Memory, start: np.ndarray, end: np.ndarray) -> None:
        self._strict, self._memory, self._start, self._end = strict, memory, start, end
        self._left = MOST

    def bad(self, rows: np.ndarray) -> np.ndarray:
        """A mask over `rows`: False also where there are too many to ask."""
        found = np.zeros(len(rows), bool)
        if len(rows) <= self._left:
            self._left -= len(rows)
            for place, row in enumerate(rows.tolist()):
                payload = self._memory.bytes[self._start[row] : self._end[row]].tobytes()
                found[place] = not self._strict.takes(payload)
        return found

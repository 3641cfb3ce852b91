"""Where each row of a group stands in the bytes of its batch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cdc_lakehouse.avro.memory import Memory

_FARTHEST = np.uint64(1 << 40)
"""More than any buffer has: keeps sums of places and lengths far from the edge of 64 bits."""
AskBad = Callable[[np.ndarray], np.ndarray]


class Cursors:
    """One place per row, and the row's end.

    Places only grow, and never beyond `limit`, one byte behind the end. A row that turns out to be bad
    is put there, and since nothing leads back, **a row is sound exactly when it stands at its end after
    its last field**. Until then a bad row reads what lies there, harmlessly: its values are not used.
    """

    __slots__ = ("_bad", "at", "end", "limit", "memory")

    def __init__(
        self, memory: Memory, start: np.ndarray, end: np.ndarray, *, bad: AskBad | None = None
    ) -> None:
        """`bad` gives a mask of those of a few rows that are bad as a whole (`suspects`)."""
        self.memory = memory
        self._bad = bad
        self.at = start.astype(np.int64)  # a copy: it moves
        self.end = end
        self.limit = end + 1

    def __len__(self) -> int:
        return len(self.at)

    def byte(self) -> np.ndarray:
        return self.memory.bytes.take(self.at)

    def word(self) -> np.ndarray:
        """The eight bytes from here on, the first one lowest."""
        return self.memory.words[self.at].view("<u8")

    def first_byte(self) -> int:
        """Of the first row: a hint at what the others hold."""
        return int(self.memory.bytes[self.at[0]])

    def lost(self) -> np.ndarray:
        """Rows that are known to be bad by now."""
        rows: np.ndarray = np.greater(self.at, self.end)
        return rows

    def move(self, by: np.ndarray | int) -> None:
        np.add(self.at, by, out=self.at)
        np.minimum(self.at, self.limit, out=self.at)

    def jump(self, size: np.ndarray) -> None:
        """Over as many bytes as a length in the data says, whatever it says; negative is too far."""
        self.move(np.minimum(size.view(np.uint64), _FARTHEST).view(np.int64))

    def fail(self, rows: np.ndarray) -> None:
        """`rows` is a mask or indices."""
        self.at[rows] = self.limit[rows]

    def expose(self, rows: np.ndarray) -> bool:
        """Of a few odd rows, indices, the bad ones fail; whether all were bad."""
        if self._bad is None:
            return False
        bad = self._bad(rows)
        self.fail(rows[bad])
        return bool(bad.all())

    def sound(self) -> np.ndarray:
        """To be asked after the last field."""
        rows: np.ndarray = np.equal(self.at, self.end)
        return rows

    def only(self, rows: np.ndarray) -> Cursors:
        ask = self._bad
        bad = None if ask is None else lambda some: ask(rows[some])
        return Cursors(self.memory, self.at[rows], self.end[rows], bad=bad)

    def rejoin(self, rows: np.ndarray, part: Cursors) -> None:
        """Takes over how far `only(rows)` has come."""
        self.at[rows] = part.at

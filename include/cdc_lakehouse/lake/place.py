"""A place in the source's order as a ledger keeps it (`cdc-semantics` rules 2.1, 2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Place(NamedTuple):
    """Position and transaction; compared by position, except within one transaction."""

    position: tuple[int, ...]
    """epoch, phase, commit, streamed, row, order_in_tx, kind."""
    tx_id: int | None = None

    @classmethod
    def of(cls, document: Sequence[Any] | None) -> Place | None:
        return None if document is None else cls(tuple(document[0]), document[1])

    @classmethod
    def beginning_of(cls, epoch: int) -> Place:
        """Before the first row of a repeated snapshot, behind all that stood before it."""
        return cls((epoch, 0, 0, 0, 0, 0, 0))

    def is_after(self, other: Place) -> bool:
        """Rule 2.2: a transaction that is sent again may name another commit before it."""
        if self._shares_a_commit_with(other):
            return self.position[3:] > other.position[3:]
        return self.position > other.position

    def _shares_a_commit_with(self, other: Place) -> bool:
        if self.tx_id is None or self.tx_id != other.tx_id:
            return False
        return self.position[:2] == other.position[:2]


def newest(*places: Place | None) -> Place | None:
    """None where there is none."""
    found: Place | None = None
    for place in places:
        if place is not None and (found is None or place.is_after(found)):
            found = place
    return found

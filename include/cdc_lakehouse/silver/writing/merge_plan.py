"""What a MERGE does to which row of silver (`cdc-semantics` §9): conditions and values, as plain expressions.

`s` is silver's row, `f` the folded change of its key. What `f` does not tell of a row stays as `s` has it, as
long as `s` is of the same row: nothing reset it since, and it is not a deleted one that was kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column
from pyspark.sql import functions as F

from cdc_lakehouse.config.models import Deletes
from cdc_lakehouse.debezium.operations import Operation
from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.lake.place import Place
from cdc_lakehouse.silver.folding.fold import GONE, IMAGE_AT, RESET_AT, TOLD_AT
from cdc_lakehouse.silver.folding.place import is_after, literal_place, place_of_row
from cdc_lakehouse.silver.folding.refold import REFOLDED

INCOMPLETE = "_cdc_incomplete"
DELETED = "_cdc_deleted"
_STANDS_AS = ("_cdc_op", "_cdc_position", "_cdc_tx_id", "_cdc_commit_ts")

Values = Mapping[str, Column]
"""Column of silver -> what it gets."""


@dataclass(frozen=True, slots=True)
class MergePlan:
    keys: Sequence[str]
    names: Sequence[str]
    """Columns of the source, the keys among them."""
    deletes: Deletes
    lacking: Sequence[str]
    """Columns that some event did not tell."""
    cleared: Place | None
    """What stands before it is gone; None where silver has no such row."""
    refolds: bool
    dropped: frozenset[str] = frozenset()
    """Columns that the source does not send any more: a row without their values is not incomplete."""
    emptied: Sequence[str] = ()
    """Columns among `dropped` that become NULL in all rows of silver."""
    filled: Mapping[str, Column] = field(default_factory=dict)
    """Column -> its value in all rows of silver that have none."""
    events: int = 0
    """Of which the changes were folded: there are no more changes than that, but for refolded keys, and for
    updates of a key that the table names, which are two."""

    @property
    def keeps_deleted(self) -> bool:
        return self.deletes is Deletes.SOFT

    def on_key(self) -> Column:
        return reduce(and_, (_s(name).eqNullSafe(_f(name)) for name in self.keys))

    def applies(self) -> Column:
        """A key that was refolded replaces a row of the same place too, never a newer one: bronze may lack
        an event that silver has applied, where somebody deleted it by hand."""
        newer = is_after(place_of_row("f"), place_of_row("s"))
        if not self.refolds:
            return newer
        return newer | (_f(REFOLDED) & ~is_after(place_of_row("s"), place_of_row("f")))

    def is_cleared(self) -> Column:
        """Of a row of silver: it stood there before all rows went."""
        if self.cleared is None:
            return F.lit(False)
        gone = is_after(literal_place(self.cleared), place_of_row("s"))
        return gone & ~_was_deleted() if self.keeps_deleted else gone

    @property
    def sets_all(self) -> bool:
        """Return whether rows change without an event in this merge."""
        return bool(self.emptied or self.filled)

    def is_to_be_set(self) -> Column:
        """Return whether a row of silver has a value to be emptied, or lacks one to be filled."""
        full = [_s(name).isNotNull() for name in self.emptied]
        return reduce(or_, [*full, *(_s(name).isNull() for name in self.filled)], F.lit(False))

    def set_row(self) -> Values:
        nothing = {name: F.lit(None) for name in self.emptied}
        return {**nothing, **{name: self._kept(name) for name in self.filled}}

    def row(self) -> Values:
        """Of a row that silver has; with `keeps_deleted` it may be deleted by now."""
        values = {name: self._value(name) for name in self.names}
        return {**values, **self._stands_as(), INCOMPLETE: self._incomplete()}

    def new_row(self) -> Values:
        values = {name: _f(name) for name in self.names}
        untold = [F.when(_f(TOLD_AT)[name].isNull() & ~_f(GONE), F.lit(name)) for name in self._to_be_told]
        return {**values, **self._stands_as(), INCOMPLETE: _listed(untold)}

    def cleared_row(self) -> Values:
        """Only with `keeps_deleted`."""
        return {**self.set_row(), "_cdc_op": F.lit(Operation.TRUNCATE.value), DELETED: F.lit(True)}

    @property
    def _to_be_told(self) -> Sequence[str]:
        return [name for name in self.lacking if name not in self.dropped]

    def _value(self, name: str) -> Column:
        own = _f(name)
        if name in self.lacking:
            kept = F.when(self._is_same_row(), self._kept(name))
            own = F.when(self._is_told(name), own).otherwise(kept)
        return F.when(self._has_image(), own).otherwise(self._kept(name)) if self.keeps_deleted else own

    def _kept(self, name: str) -> Column:
        return F.coalesce(_s(name), self.filled[name]) if name in self.filled else _s(name)

    def _incomplete(self) -> Column:
        untold = [F.when(self._is_unknown(name), F.lit(name)) for name in self._to_be_told]
        found = _listed(untold)
        return F.when(self._has_image(), found).otherwise(_s(INCOMPLETE)) if self.keeps_deleted else found

    def _is_unknown(self, name: str) -> Column:
        was = F.coalesce(F.array_contains(_s(INCOMPLETE), name), F.lit(False))
        return ~self._is_told(name) & (~self._is_same_row() | was)

    def _is_told(self, name: str) -> Column:
        """By an event that silver has not applied; what a refolded key has of bronze is all there is."""
        at = _f(TOLD_AT)[name]
        return self._or_refolded(is_after(at, place_of_row("s")), at)

    def _has_image(self) -> Column:
        """Whether anything but deletes is new."""
        at = _f(IMAGE_AT)
        return self._or_refolded(is_after(at, place_of_row("s")), at)

    def _or_refolded(self, condition: Column, at: Column) -> Column:
        return condition | (_f(REFOLDED) & at.isNotNull()) if self.refolds else condition

    def _is_same_row(self) -> Column:
        same = ~is_after(_f(RESET_AT), place_of_row("s"))
        if not self.keeps_deleted:
            return same
        is_alive = ~_was_deleted()
        if self.refolds:  # from the events that silver has applied: the row that they ended is the same one
            is_alive |= _f(REFOLDED) & ~is_after(place_of_row("f"), place_of_row("s"))
        return same & is_alive

    def _stands_as(self) -> Values:
        found = {name: _f(name) for name in _STANDS_AS}
        return {**found, DELETED: _f(GONE)} if self.keeps_deleted else found


def _listed(names: Sequence[Column]) -> Column:
    """Null where it would be empty."""
    if not names:
        return F.lit(None).cast("array<string>")
    found = F.array_compact(F.array(*names))
    return F.when(F.size(found) > 0, found)


def _was_deleted() -> Column:
    """Rows of a time when deleted ones were not kept do not say."""
    return F.coalesce(_s(DELETED), F.lit(False))


def _s(name: str) -> Column:
    return F.col(f"s.{quoted(name)}")


def _f(name: str) -> Column:
    return F.col(f"f.{quoted(name)}")

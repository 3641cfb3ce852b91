"""Columns made of other columns, without repetition: records and unions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cdc_lakehouse.avro.constants import LEAST_ROWS, Run, holds, likely_run, repeated
from cdc_lakehouse.avro.cursors import Cursors
from cdc_lakehouse.avro.leaves import Column
from cdc_lakehouse.avro.spread import Spread, spread_out
from cdc_lakehouse.avro.varints import read_longs
from cdc_lakehouse.avro.wire import Wire


class RecordColumn:
    """A struct of the fields that are `wanted`; the others only move the cursors."""

    def __init__(self, fields: Sequence[tuple[str, Column, bool]], wires: Sequence[Wire] = ()) -> None:
        """With `wires`, the types of the fields, runs that repeat in every row are read once."""
        self._fields = tuple((column, wanted) for _, column, wanted in fields)
        self._wires = tuple(wires)
        self.type = pa.struct([(name, column.type) for name, column, wanted in fields if wanted])

    def read(self, cursors: Cursors, spread: Spread | None = None) -> pa.Array:
        if spread is not None and 4 * len(cursors) < len(spread):
            # The one before a change, mostly: few rows are read by themselves.
            return spread_out(self.read(cursors), spread)
        children = self._columns(cursors, spread)
        validity, count = (None, len(cursors)) if spread is None else (spread.validity, len(spread))
        return pa.Array.from_buffers(self.type, count, [validity], children=children)

    def skip(self, cursors: Cursors) -> None:
        for column, _ in self._fields:
            column.skip(cursors)

    def _columns(self, cursors: Cursors, spread: Spread | None) -> list[pa.Array]:
        children: list[pa.Array] = []
        place = one_by_one = 0
        while place < len(self._fields):
            if self._wires and place >= one_by_one and len(cursors) >= LEAST_ROWS:
                run = likely_run(self._wires[place:], cursors)
                found = self._repeated(run, place, cursors, spread) if run is not None else None
                if run is not None and found is not None:
                    children += found
                    place += len(run)
                    continue
                one_by_one = place + (len(run) if run is not None else 1)
            column, wanted = self._fields[place]
            if wanted:
                children.append(column.read(cursors, spread))
            else:
                column.skip(cursors)
            place += 1
        return children

    def _repeated(
        self, run: Run, place: int, cursors: Cursors, spread: Spread | None
    ) -> list[pa.Array] | None:
        """The wanted columns of a run, behind which the cursors stand then; None when it is none."""
        fields = self._fields[place : place + len(run)]
        count = len(cursors) if spread is None else len(spread)
        columns = [
            repeated(column, data, count) for (column, _), data in zip(fields, run.parts(), strict=True)
        ]
        if any(column is None for column in columns) or not holds(run, cursors):
            return None
        cursors.move(len(run.data))
        return [
            column if spread is None else spread.under(column)
            for column, (_, wanted) in zip(columns, fields, strict=True)
            if wanted
        ]


class NullableColumn:
    """A union of null and one type, in either order: its one byte of branch is the validity."""

    def __init__(self, value: Column, *, null_place: int) -> None:
        self._value = value
        self._null_byte, self._value_byte = 2 * null_place, 2 - 2 * null_place
        self.type = value.type

    def read(self, cursors: Cursors, spread: Spread | None = None) -> pa.Array:
        present = self._present(cursors)
        count = int(np.count_nonzero(present))
        if count == len(present) or (count > 0 and _all_but_lost(present, count, cursors)):
            return self._value.read(cursors, spread)
        if count == 0:
            return pa.nulls(len(cursors) if spread is None else len(spread), self.type)
        rows = np.flatnonzero(present)
        part = cursors.only(rows)
        values = self._value.read(part, Spread(present) if spread is None else spread.of(present))
        cursors.rejoin(rows, part)
        return values

    def skip(self, cursors: Cursors) -> None:
        rows = np.flatnonzero(self._present(cursors))
        if len(rows) == len(cursors):
            self._value.skip(cursors)
        elif len(rows):
            part = cursors.only(rows)
            self._value.skip(part)
            cursors.rejoin(rows, part)

    def _present(self, cursors: Cursors) -> np.ndarray:
        branch = cursors.byte()
        cursors.move(1)
        present: np.ndarray = np.equal(branch, self._value_byte)
        if len(branch) and (branch.max() > 2 or (branch == 1).any()):
            cursors.fail(~present & (branch != self._null_byte))
        return present


def _all_but_lost(present: np.ndarray, count: int, cursors: Cursors) -> bool:
    """A few corrupt rows shall not cost the others the way without nulls: theirs mean nothing anyhow."""
    if count < len(present) - len(present) // 16:
        return False
    return bool((present | cursors.lost()).all())


class SoleColumn:
    """A union of one type: nothing but a branch before the value."""

    def __init__(self, value: Column) -> None:
        self._value = value
        self.type = value.type

    def read(self, cursors: Cursors, spread: Spread | None = None) -> pa.Array:
        cursors.fail(read_longs(cursors) != 0)
        return self._value.read(cursors, spread)

    def skip(self, cursors: Cursors) -> None:
        cursors.fail(read_longs(cursors) != 0)
        self._value.skip(cursors)


class UnionColumn:
    """A union of several types: a struct of members, `member0` for the first branch that is not null,
    of which at most one has a value; the struct itself is null where the branch is."""

    def __init__(self, branches: Sequence[Column]) -> None:
        self._branches = tuple(branches)
        members = [column.type for column in branches if not pa.types.is_null(column.type)]
        self.type = pa.struct([(f"member{place}", type_) for place, type_ in enumerate(members)])

    def read(self, cursors: Cursors, spread: Spread | None = None) -> pa.Array:
        members, null = [], np.zeros(len(cursors), bool)
        for column, present in self._by_branch(cursors):
            if pa.types.is_null(column.type):
                null |= present
                continue
            own = Spread(present)
            part = cursors.only(own.rows)
            members.append(column.read(part, own))
            cursors.rejoin(own.rows, part)
        validity = pa.py_buffer(np.packbits(~null, bitorder="little")) if null.any() else None
        struct = pa.Array.from_buffers(self.type, len(cursors), [validity], children=members)
        return spread_out(struct, spread)

    def skip(self, cursors: Cursors) -> None:
        branch = self._read_branch(cursors)
        for place in np.unique(branch).tolist():  # few of many: items of a list are skipped one by one
            if 0 <= place < len(self._branches):
                rows = np.flatnonzero(branch == place)
                part = cursors.only(rows)
                self._branches[place].skip(part)
                cursors.rejoin(rows, part)

    def _by_branch(self, cursors: Cursors) -> list[tuple[Column, np.ndarray]]:
        branch = self._read_branch(cursors)
        return [(column, branch == place) for place, column in enumerate(self._branches)]

    def _read_branch(self, cursors: Cursors) -> np.ndarray:
        branch = read_longs(cursors)
        cursors.fail((branch < 0) | (branch >= len(self._branches)))
        return branch

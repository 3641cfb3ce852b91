"""The keys or the values of a batch, decoded in groups of rows that share a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.avro.faults import RecordFault
from cdc_lakehouse.avro.frames import FrameColumn, frame_column
from cdc_lakehouse.avro.schema_refs import SchemaRef
from cdc_lakehouse.debezium.change_columns import Decoded, Program, program_of
from cdc_lakehouse.debezium.columns import Column
from cdc_lakehouse.debezium.events import KeyDecoder, ValueDecoder
from cdc_lakehouse.debezium.plans import DecodePlans

Find = Callable[[str, tuple[Column, ...], str], KeyDecoder | ValueDecoder | RecordFault]


@dataclass(frozen=True, slots=True)
class Group:
    """Rows whose records are decoded together; without a program they are decoded one by one."""

    program: Program | None
    rows: np.ndarray


class Side:
    """`admitted`: rows whose bytes may be looked at; `headers`: ids outside the bytes, if there are any."""

    def __init__(self, column: pa.Array, admitted: np.ndarray, headers: pa.Array | None) -> None:
        self.frames: FrameColumn = frame_column(column, headers)
        self.framed = self.frames.sound & admitted
        self.misframed = self.frames.there & admitted & ~self.framed
        self._ids, self._places = _distinct(self.frames.schema[self.framed])
        self._refs = [self.frames.ref(number) for number in self._ids.tolist()]

    @property
    def refs(self) -> set[SchemaRef]:
        return set(self._refs)

    def schema_ids(self) -> pa.Array:
        """Null where a GUID names the schema: it has no number here."""
        ids = self.frames.schema.astype(np.int32)
        numbered = self.framed if not self.frames.guids else self.framed & (ids >= 0)
        return pa.array(ids, mask=~numbered) if not numbered.all() else pa.array(ids)

    def groups(self, programs: Programs) -> list[Group]:
        rows = np.flatnonzero(self.framed)
        found = [programs.of(ref) for ref in self._refs]
        if len(found) == 1:
            return [Group(found[0], rows)]
        distinct = list(dict.fromkeys(found))
        group_of_id = np.array([distinct.index(program) for program in found], np.int64)
        group = group_of_id[self._places] if found else np.zeros(0, np.int64)
        return [Group(program, rows[group == place]) for place, program in enumerate(distinct)]

    def read(self, groups: list[Group], type_: pa.DataType) -> Decoded:
        """Over all rows of the batch; those of no group are null and neither sound nor fitting."""
        count = len(self.framed)
        parts = [
            group.program.read(self.frames.memory, self.frames.start[group.rows], self.frames.end[group.rows])
            for group in groups
            if group.program is not None
        ]
        if len(parts) == 1 and len(parts[0].columns) == count:
            return parts[0]
        sound, fits, place = (np.zeros(count, kind) for kind in (bool, bool, np.int32))
        there = np.zeros(count, bool)
        before = 0
        for group, part in zip(groups, parts, strict=True):
            sound[group.rows], fits[group.rows], there[group.rows] = part.sound, part.fits, True
            place[group.rows] = np.arange(before, before + len(group.rows), dtype=np.int32)
            before += len(group.rows)
        if not parts:
            return Decoded(pa.nulls(count, type_), sound, fits)
        together = pa.concat_arrays([part.columns for part in parts])
        indices = pa.array(place) if there.all() else pa.array(place, mask=~there)
        return Decoded(pc.take(together, indices, boundscheck=False), sound, fits)


class Programs:
    """By schema, of one side of one table: compiled once per process and plans."""

    def __init__(self, plans: DecodePlans, columns: tuple[Column, ...], find: Find) -> None:
        self._plans, self._columns, self._find = plans, columns, find
        self._by_ref: dict[SchemaRef, Program | None] = {}
        self._same: dict[Program, Program] = {}

    def of(self, ref: SchemaRef) -> Program | None:
        """None where records are read one by one, or where every one of them is bad."""
        if ref not in self._by_ref:
            decoder = self._find(self._plans.schemas[ref], self._columns, self._plans.table)
            program = None if isinstance(decoder, RecordFault) else program_of(decoder, self._columns)
            # One object for equal ones, so that comparing them later costs nothing.
            self._by_ref[ref] = None if program is None else self._same.setdefault(program, program)
        return self._by_ref[ref]


def _distinct(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if len(ids) and (ids == ids[0]).all():
        return ids[:1], np.zeros(len(ids), np.int64)
    return np.unique(ids, return_inverse=True)

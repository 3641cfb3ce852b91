"""The keys or the values of a batch, decoded in groups of rows that share a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cdc_lakehouse.avro.faults import RecordFault
from cdc_lakehouse.avro.groups import Framed, in_row_order
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


class Side(Framed):
    def grouped(self, programs: Programs) -> list[Group]:
        return [Group(program, rows) for program, rows in self.groups(programs.of)]

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
        sound, fits = np.zeros(count, bool), np.zeros(count, bool)
        for group, part in zip(groups, parts, strict=True):
            sound[group.rows], fits[group.rows] = part.sound, part.fits
        columns = [(group.rows, part.columns) for group, part in zip(groups, parts, strict=True)]
        return Decoded(in_row_order(columns, count, type_), sound, fits)


class Programs:
    """By schema, of one side of one table: compiled once per process and plans."""

    def __init__(
        self,
        plans: DecodePlans,
        columns: tuple[Column, ...],
        find: Find,
        *,
        refused: frozenset[SchemaRef] = frozenset(),
    ) -> None:
        self._plans, self._columns, self._find = plans, columns, find
        self._refused = plans.unknown | refused
        self._by_ref: dict[SchemaRef, Program | None] = {}
        self._same: dict[Program, Program] = {}

    def of(self, ref: SchemaRef) -> Program | None:
        """None where records are read one by one, or where every one of them is bad."""
        if ref in self._refused:
            return None
        if ref not in self._by_ref:
            decoder = self._find(self._plans.schemas[ref], self._columns, self._plans.table)
            program = None if isinstance(decoder, RecordFault) else program_of(decoder, self._columns)
            # One object for equal ones, so that comparing them later costs nothing.
            self._by_ref[ref] = None if program is None else self._same.setdefault(program, program)
        return self._by_ref[ref]

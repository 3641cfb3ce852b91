"""The records of a batch, grouped by what decodes them together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.avro.frames import FrameColumn, frame_column
from cdc_lakehouse.avro.schema_refs import SchemaRef

P = TypeVar("P")


class Framed:
    """`admitted`: rows whose bytes may be looked at; `headers`: ids outside the bytes, if there are any."""

    def __init__(self, column: pa.Array, admitted: np.ndarray, headers: pa.Array | None) -> None:
        self.frames: FrameColumn = frame_column(column, headers)
        self.framed = self.frames.sound & admitted
        self.misframed = self.frames.there & admitted & ~self.framed
        self._codes, self._places = _distinct(self.frames.schema[self.framed])
        self._refs = [self.frames.ref(code) for code in self._codes.tolist()]

    @property
    def refs(self) -> set[SchemaRef]:
        return set(self._refs)

    def schema_ids(self) -> pa.Array:
        """Null where a GUID names the schema: it has no number here."""
        ids = self.frames.schema.astype(np.int32)
        numbered = self.framed if not self.frames.guids else self.framed & (ids >= 0)
        return pa.array(ids, mask=~numbered) if not numbered.all() else pa.array(ids)

    def groups(self, program_of: Callable[[SchemaRef], P]) -> list[tuple[P, np.ndarray]]:
        """Rows by equal programs, so that schemas which differ in nothing that counts are one group."""
        rows = np.flatnonzero(self.framed)
        found = [program_of(ref) for ref in self._refs]
        if len(found) == 1:
            return [(found[0], rows)]
        distinct = list(dict.fromkeys(found))
        group_of_code = np.array([distinct.index(program) for program in found], np.int64)
        group = group_of_code[self._places] if found else np.zeros(0, np.int64)
        return [(program, rows[group == place]) for place, program in enumerate(distinct)]


def in_row_order(parts: Sequence[tuple[np.ndarray, pa.Array]], count: int, type_: pa.DataType) -> pa.Array:
    """Arrays of some rows each as one of all rows; null where no part has the row."""
    if len(parts) == 1 and len(parts[0][0]) == count:
        return parts[0][1]
    if not parts:
        return pa.nulls(count, type_)
    place = np.full(count, -1, np.int32)
    before = 0
    for rows, array in parts:
        place[rows] = np.arange(before, before + len(array), dtype=np.int32)
        before += len(array)
    missing = place < 0
    indices = pa.array(place, mask=missing) if missing.any() else pa.array(place)
    return pc.take(pa.concat_arrays([array for _, array in parts]), indices, boundscheck=False)


def _distinct(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if len(codes) and (codes == codes[0]).all():
        return codes[:1], np.zeros(len(codes), np.int64)
    return np.unique(codes, return_inverse=True)

"""Records of one writer schema as values of a type that other writers share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from cdc_lakehouse.avro.admission import SchemaRefusedError
from cdc_lakehouse.avro.columnar import Projection, Reader
from cdc_lakehouse.avro.faults import RecordFault, ValueFault
from cdc_lakehouse.avro.memory import Memory
from cdc_lakehouse.avro.spread import Spread, spread_out
from cdc_lakehouse.avro.typed.columns import ConvertColumn
from cdc_lakehouse.avro.typed.meeting import fitting, fitting_column, widened
from cdc_lakehouse.avro.typed.plans import Semantic, ValuePlan, plan_root, struct_plan
from cdc_lakehouse.avro.typed.text_sizes import TextSize, over_text_budget, require_text_budget
from cdc_lakehouse.avro.typed.value_plan import TypeRefusedError
from cdc_lakehouse.avro.wire import Wire
from cdc_lakehouse.avro.writer import WriterSchema, writer_schema


@dataclass(frozen=True, slots=True)
class Program:
    """Equal for all schemas whose records can be decoded together."""

    wire: Wire
    fields: tuple[str, ...] | None
    steps: tuple[ConvertColumn, ...]
    raw: Reader = field(compare=False)
    text_size: TextSize | None = None

    def read(self, memory: Memory, start: np.ndarray, end: np.ndarray) -> tuple[pa.Array, np.ndarray]:
        """Values, and a mask of the records that are sound and fit the type."""
        column, fits = self.raw.read(memory, start, end)
        if self.text_size is not None:
            over = over_text_budget(self.text_size.of_column(column), end - start, fits)
            if over is not None:
                kept = Spread(~over)
                values, sound = self._convert_column(column.take(pa.array(kept.rows)), fits[kept.rows])
                fits = ~over
                fits[kept.rows] = sound
                return spread_out(values, kept), fits
        return self._convert_column(column, fits)

    def _convert_column(self, column: pa.Array, fits: np.ndarray) -> tuple[pa.Array, np.ndarray]:
        for step in self.steps:
            column, refused = step(column)
            if refused is not None:
                fits = fits & ~refused
        return column, fits


@dataclass(frozen=True, eq=False, slots=True)
class Decodable:
    """A writer schema whose records can be decoded."""

    schema: WriterSchema
    plan: ValuePlan
    fields: tuple[str, ...] | None
    """Those that this writer has of the wanted ones."""

    def program(self, type_: pa.DataType) -> Program:
        return _program(self, type_)

    def value(self, payload: bytes, type_: pa.DataType) -> Any:
        """Of one record. Raises `RecordFault`."""
        value = self.schema.read(payload)
        if self.fields is not None:
            value = {name: value[name] for name in self.fields}
        if self.plan.text_size is not None and value is not None:
            require_text_budget(self.plan.text_size.of_value(value), len(payload))
        for convert in (self.plan.convert, _fit(self.plan.type, type_)):
            if value is not None and convert is not None:
                value = convert(value)
        return value


Writer = Decodable | RecordFault
"""Or the fault that every record of the schema has."""


@lru_cache(maxsize=4096)
def writer_of(text: str, fields: tuple[str, ...] | None, semantic: Semantic) -> Writer:
    """Compiled once per process."""
    try:
        schema = writer_schema(text)
        root = plan_root(schema, semantic)
    except (SchemaRefusedError, TypeRefusedError) as exc:
        return RecordFault(ValueFault.INCOMPATIBLE_SCHEMA, f"schema that is not supported: {exc}")
    if isinstance(root, ValuePlan):
        if fields is not None:
            return RecordFault(ValueFault.INCOMPATIBLE_SCHEMA, "schema of no record, of which to take fields")
        return Decodable(schema, root, None)
    if fields is not None:
        root = {name: plan for name, plan in root.items() if name in fields}
    return Decodable(schema, struct_plan(root), None if fields is None else tuple(root))


def value_type(writers: Iterable[Writer], fields: tuple[str, ...] | None) -> pa.DataType:
    """The one type of all."""
    found: pa.DataType | None = None
    for writer in writers:
        if isinstance(writer, Decodable):
            found = writer.plan.type if found is None else _met(found, writer.plan.type)
    if found is None:
        raise ValueError("none of the schemas can be decoded")
    if fields is None:
        return found
    missing = [name for name in fields if name not in found.names]
    if missing:
        raise ValueError(f"no schema has the field {missing[0]}")
    return pa.struct([found.field(name) for name in fields])


def _met(was: pa.DataType, now: pa.DataType) -> pa.DataType:
    """Field by field: what does not meet costs only the records that have a value there."""
    if not (pa.types.is_struct(was) and pa.types.is_struct(now)):
        return widened(was, now) or was
    fields = {each.name: each.type for each in was}
    for each in now:
        known = fields.get(each.name, each.type)
        fields[each.name] = widened(known, each.type) or known
    return pa.struct(list(fields.items()))


_fit = lru_cache(maxsize=4096)(fitting)


@lru_cache(maxsize=4096)
def _program(writer: Decodable, type_: pa.DataType) -> Program:
    steps = (writer.plan.column, fitting_column(writer.plan.type, type_))
    wanted = None if writer.fields is None else Projection(tuple((name, None) for name in writer.fields))
    wire = writer.schema.wire
    kept, reader = tuple(step for step in steps if step is not None), Reader.of(wire, wanted)
    return Program(wire, writer.fields, kept, reader, writer.plan.text_size)

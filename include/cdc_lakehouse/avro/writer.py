"""A writer schema, admitted and compiled: from a payload to its raw values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from struct import error
from typing import Any

from cdc_lakehouse.avro.admission import admit
from cdc_lakehouse.avro.faults import AvroFault, RecordFault
from cdc_lakehouse.avro.output import count_output
from cdc_lakehouse.avro.primitives import Reader
from cdc_lakehouse.avro.reader import compile_reader
from cdc_lakehouse.avro.schema_types import SchemaTypes
from cdc_lakehouse.avro.widths import Budget, least_output
from cdc_lakehouse.avro.wire import Wire, wire_plan


@dataclass(frozen=True, eq=False, slots=True)
class WriterSchema:
    types: SchemaTypes
    reader: Reader
    wire: Wire
    budget: Budget
    least_output: int
    """Bytes that each of its records takes at least (`avro.output`)."""

    @classmethod
    def of(cls, types: SchemaTypes, wire: Wire) -> WriterSchema:
        budget = Budget()
        return cls(types, compile_reader(wire, budget), wire, budget, least_output(wire, objects=True))

    @property
    def root(self) -> Any:
        return self.types.root

    def resolve(self, node: Any) -> Any:
        return self.types.resolve(node)

    def reading(self, wire: Wire) -> WriterSchema:
        """The same schema with another plan for the same bytes."""
        return WriterSchema.of(self.types, wire)

    def read(self, payload: bytes) -> Any:
        """Raw values of one record; all bytes must be used. Raises `RecordFault`."""
        count_output(self.least_output)
        self.budget.begin(len(payload))
        try:
            value, end = self.reader(payload, 0)
        except (IndexError, error):
            raise RecordFault(AvroFault.TRUNCATED, "the bytes end here") from None
        if end != len(payload):
            raise RecordFault(AvroFault.TRAILING_BYTES, f"{len(payload) - end} bytes after the last field")
        return value


@lru_cache(maxsize=4096)
def writer_schema(text: str) -> WriterSchema:
    """Compiled once per process and text. Raises `SchemaRefusedError`."""
    types = admit(text)
    return WriterSchema.of(types, wire_plan(types))

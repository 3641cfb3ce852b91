"""A writer schema, admitted and compiled: from a payload to its raw values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from struct import error
from typing import Any

from cdc_lakehouse.avro.admission import admit
from cdc_lakehouse.avro.faults import AvroFault, RecordFault
from cdc_lakehouse.avro.reader import Reader, compile_reader
from cdc_lakehouse.avro.wire import Wire, wire_plan


@dataclass(frozen=True, eq=False, slots=True)
class WriterSchema:
    """`root` and `named` keep `connect.*` attributes and `logical` for whoever gives values a meaning."""

    root: Any
    named: Mapping[str, Any]
    reader: Reader
    wire: Wire

    def read(self, payload: bytes) -> Any:
        """Raw values of one record; all bytes must be used. Raises `RecordFault`."""
        try:
            value, end = self.reader(payload, 0)
        except (IndexError, error):
            raise RecordFault(AvroFault.TRUNCATED, "the bytes end here") from None
        if end != len(payload):
            raise RecordFault(AvroFault.TRAILING_BYTES, f"{len(payload) - end} bytes after the last field")
        return value

    def resolve(self, node: Any) -> Any:
        """The type that a name stands for; any other type as it is."""
        while True:
            if isinstance(node, str) and node in self.named:
                node = self.named[node]
            elif isinstance(node, dict) and isinstance(node["type"], (dict, list)):
                node = node["type"]
            elif isinstance(node, dict) and node["type"] in self.named:
                node = self.named[node["type"]]
            else:
                return node


@lru_cache(maxsize=4096)
def writer_schema(text: str) -> WriterSchema:
    """Compiled once per process and text. Raises `SchemaRefusedError`."""
    root = admit(text)
    named = dict(root["__named_schemas"]) if isinstance(root, dict) and "__named_schemas" in root else {}
    return WriterSchema(root, named, compile_reader(root, named), wire_plan(root, named))

"""The wire format around a record's Avro bytes (`cdc-semantics` §6)."""

from __future__ import annotations

from typing import NamedTuple

from cdc_lakehouse.avro.faults import AvroFault, RecordFault

_HEADER = 5


class Frame(NamedTuple):
    """Format 0: `0x00`, four bytes of schema id with the highest first, then the payload."""

    schema_id: int
    payload: bytes


def parse_frame(data: bytes) -> Frame:
    """Raises `RecordFault`; of a foreign format its text names the first byte only."""
    if not data:
        raise RecordFault(AvroFault.BAD_FRAME, "no bytes at all")
    if data[0] != 0:
        raise RecordFault(AvroFault.BAD_FRAME, f"first byte 0x{data[0]:02x}, expected 0x00")
    if len(data) < _HEADER:
        raise RecordFault(AvroFault.BAD_FRAME, f"{len(data)} bytes, a frame has at least {_HEADER}")
    schema_id = int.from_bytes(data[1:_HEADER], "big", signed=True)
    if schema_id < 0:
        raise RecordFault(AvroFault.BAD_FRAME, "negative schema id")
    return Frame(schema_id, data[_HEADER:])

"""The wire format around a record's Avro bytes (`cdc-semantics` §6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cdc_lakehouse.avro.faults import AvroFault, RecordFault
from cdc_lakehouse.avro.memory import Memory

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


@dataclass(frozen=True, slots=True)
class FrameColumn:
    """The frames of a batch, where they lie in its memory; `parse_frame` says why one is not `sound`."""

    memory: Memory
    there: np.ndarray
    """False for a null: no record bytes at all, which is no fault."""
    sound: np.ndarray
    schema_id: np.ndarray
    """Means something for sound frames only."""
    start: np.ndarray
    end: np.ndarray
    """Of the payload."""


def frame_column(column: pa.Array) -> FrameColumn:
    """`column` is of type binary."""
    count = len(column)
    whole = np.frombuffer(column.buffers()[1] or bytes(4), np.int32)
    offsets = whole[column.offset : column.offset + count + 1].astype(np.int64)
    memory = Memory(column.buffers()[2] or pa.py_buffer(b""))
    start, end = offsets[:-1], offsets[1:]
    there = column.is_valid().to_numpy(zero_copy_only=False)
    header = memory.words[start].view(">u8")
    schema_id = (header >> np.uint64(24)).astype(np.uint32).astype(np.int64)
    # A first byte of zero, then an id without sign: nine leading bits of zero.
    sound = there & (end - start >= _HEADER) & (header < np.uint64(1 << 55))
    return FrameColumn(memory, there, sound, schema_id, np.minimum(start + _HEADER, end), end)

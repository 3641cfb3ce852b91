"""The wire format around a record's Avro bytes (`cdc-semantics` §6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.avro.faults import AvroFault, RecordFault
from cdc_lakehouse.avro.memory import Memory

_HEADER = 5


class Frame(NamedTuple):
    """Format 0: `0x00`, four bytes of schema id with the highest first, then the payload.

    Format 1, `0x01` and a GUID of 16 bytes, is known by its first byte and refused: only numbers are
    looked up. Some serializers put the same bytes into a header of the record and nothing before the
    payload; then the header counts.
    """

    schema_id: int
    payload: bytes


def parse_frame(data: bytes, header: bytes | None = None) -> Frame:
    """Raises `RecordFault`; of a foreign format its text names the first byte only."""
    if header is not None:
        return Frame(_schema_id(header), data)
    return Frame(_schema_id(data), data[_HEADER:])


def _schema_id(data: bytes) -> int:
    if not data:
        raise RecordFault(AvroFault.BAD_FRAME, "no bytes at all")
    if data[0] != 0:
        raise RecordFault(AvroFault.BAD_FRAME, f"first byte 0x{data[0]:02x}, expected 0x00")
    if len(data) < _HEADER:
        raise RecordFault(AvroFault.BAD_FRAME, f"{len(data)} bytes, a frame has at least {_HEADER}")
    schema_id = int.from_bytes(data[1:_HEADER], "big", signed=True)
    if schema_id < 0:
        raise RecordFault(AvroFault.BAD_FRAME, "negative schema id")
    return schema_id


def id_headers(headers: pa.Array, name: str) -> pa.Array | None:
    """Per record the last header of that name, null where there is none; None where no record has one."""
    if headers.null_count == len(headers):
        return None
    items = headers.flatten()
    found = np.flatnonzero(pc.equal(items.field("key"), name).fill_null(False).to_numpy(zero_copy_only=False))
    if not len(found):
        return None
    rows = pc.list_parent_indices(headers).to_numpy(zero_copy_only=False)[found]
    place = np.full(len(headers), -1, np.int64)
    place[rows] = found  # in their order, so the last one stays
    return items.field("value").cast(pa.binary()).take(pa.array(place, mask=place < 0))


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


def frame_column(column: pa.Array, headers: pa.Array | None = None) -> FrameColumn:
    """`column` is of type binary, `headers` what `id_headers` gives."""
    count = len(column)
    whole = np.frombuffer(column.buffers()[1] or bytes(4), np.int32)
    offsets = whole[column.offset : column.offset + count + 1].astype(np.int64)
    memory = Memory(column.buffers()[2] or pa.py_buffer(b""))
    start, end = offsets[:-1], offsets[1:]
    there = column.is_valid().to_numpy(zero_copy_only=False)
    word = memory.words[start].view(">u8")
    schema_id = (word >> np.uint64(24)).astype(np.uint32).astype(np.int64)
    # A first byte of zero, then an id without sign: nine leading bits of zero.
    sound = there & (end - start >= _HEADER) & (word < np.uint64(1 << 55))
    payload = np.minimum(start + _HEADER, end)
    if headers is not None:
        told = headers.is_valid().to_numpy(zero_copy_only=False)
        ids = _ids_of(headers)
        sound, payload = np.where(told, there & (ids >= 0), sound), np.where(told, start, payload)
        schema_id = np.where(told, ids, schema_id)
    return FrameColumn(memory, there, sound, schema_id, payload, end)


def _ids_of(headers: pa.Array) -> np.ndarray:
    """-1 where there is none, or none that can be read. A batch has few different ones."""
    codes = headers.dictionary_encode()
    ids = [_id_or_none(text) for text in codes.dictionary.to_pylist()]
    found: np.ndarray = np.array([*ids, -1], np.int64)[codes.indices.fill_null(len(ids)).to_numpy()]
    return found


def _id_or_none(text: bytes) -> int:
    try:
        return _schema_id(text)
    except RecordFault:
        return -1

"""The wire format around a record's Avro bytes (`cdc-semantics` §6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.avro.faults import AvroFault, RecordFault
from cdc_lakehouse.avro.memory import Memory
from cdc_lakehouse.avro.schema_refs import SchemaRef
from cdc_lakehouse.avro.typed.columns import numbers_of_offsets

_SIZES = {0: 5, 1: 17}
"""Bytes before the payload, by the first of them."""
_GUID = 16
_NONE = -1
"""Of a record that names no schema."""


class Frame(NamedTuple):
    """Format 0: `0x00`, four bytes of schema id with the highest first, then the payload.

    Format 1: `0x01`, a GUID of 16 bytes, then the payload. Some serializers put the same bytes into a
    header of the record and nothing before the payload; then the header counts.
    """

    schema: SchemaRef
    payload: bytes


def parse_frame(data: bytes, header: bytes | None = None) -> Frame:
    """Raises `RecordFault`; of a foreign format its text names the first byte only."""
    if header is not None:
        return Frame(_schema_ref(header), data)
    ref = _schema_ref(data)
    return Frame(ref, data[_SIZES[data[0]] :])


def _schema_ref(data: bytes) -> SchemaRef:
    if not data:
        raise RecordFault(AvroFault.BAD_FRAME, "no bytes at all")
    size = _SIZES.get(data[0])
    if size is None:
        raise RecordFault(AvroFault.BAD_FRAME, f"first byte 0x{data[0]:02x}, expected 0x00 or 0x01")
    if len(data) < size:
        raise RecordFault(AvroFault.BAD_FRAME, f"{len(data)} bytes, a frame has at least {size}")
    if data[0] == 1:
        return UUID(bytes=bytes(data[1:size]))
    schema_id = int.from_bytes(data[1:size], "big", signed=True)
    if schema_id < 0:
        raise RecordFault(AvroFault.BAD_FRAME, "negative schema id")
    return schema_id


def id_headers(headers: pa.Array, name: str) -> pa.Array | None:
    """Per record the last header of that name, null where there is none; None where no record has one."""
    items = headers.flatten()
    if not len(items):
        return None
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
    schema: np.ndarray
    """A schema id, or below zero a stand-in for a GUID; means something for sound frames only."""
    guids: tuple[UUID, ...]
    start: np.ndarray
    end: np.ndarray
    """Of the payload."""

    def ref(self, schema: int) -> SchemaRef:
        return schema if schema >= 0 else self.guids[_NONE - 1 - schema]


def frame_column(column: pa.Array, headers: pa.Array | None = None) -> FrameColumn:
    """`column` is of type binary, `headers` what `id_headers` gives."""
    offsets = numbers_of_offsets(column).astype(np.int64)
    memory = Memory(column.buffers()[2] or pa.py_buffer(b""))
    start, end = offsets[:-1], offsets[1:]
    there = column.is_valid().to_numpy(zero_copy_only=False)
    word = memory.words[start].view(">u8")
    schema = (word >> np.uint64(24)).astype(np.uint32).astype(np.int64)
    # A first byte of zero, then an id without sign: nine leading bits of zero.
    sound = there & (end - start >= _SIZES[0]) & (word < np.uint64(1 << 55))
    payload = np.minimum(start + _SIZES[0], end)
    guids = _Guids()
    if not sound.all():
        rows = np.flatnonzero(there & (end - start >= _SIZES[1]) & (word >> np.uint64(56) == 1))
        schema[rows] = guids.stand_ins(memory.pieces(_GUID)[start[rows] + 1])
        sound[rows], payload[rows] = True, start[rows] + _SIZES[1]
    if headers is not None:
        told = headers.is_valid().to_numpy(zero_copy_only=False)
        ids = _schemas_of(headers, guids)
        sound, payload = np.where(told, there & (ids != _NONE), sound), np.where(told, start, payload)
        schema = np.where(told, ids, schema)
    return FrameColumn(memory, there, sound, schema, guids.known(), payload, end)


class _Guids:
    """Each GUID of a batch gets a number, so that records can be grouped as those with ids are."""

    def __init__(self) -> None:
        self._numbers: dict[UUID, int] = {}

    def known(self) -> tuple[UUID, ...]:
        return tuple(self._numbers)

    def number(self, guid: UUID) -> int:
        return _NONE - 1 - self._numbers.setdefault(guid, len(self._numbers))

    def stand_ins(self, pieces: np.ndarray) -> np.ndarray:
        """Of GUIDs as pieces of 16 bytes. A batch has few different ones."""
        codes = pa.Array.from_buffers(
            pa.binary(_GUID), len(pieces), [None, pa.py_buffer(pieces)]
        ).dictionary_encode()
        numbers = [self.number(UUID(bytes=guid)) for guid in codes.dictionary.to_pylist()]
        found: np.ndarray = np.array(numbers, np.int64)[codes.indices.to_numpy()]
        return found


def _schemas_of(headers: pa.Array, guids: _Guids) -> np.ndarray:
    """`_NONE` where there is no header, or none that can be read. A batch has few different ones."""
    codes = headers.dictionary_encode()
    found = [_schema_or_none(text, guids) for text in codes.dictionary.to_pylist()]
    schemas: np.ndarray = np.array([*found, _NONE], np.int64)[codes.indices.fill_null(len(found)).to_numpy()]
    return schemas


def _schema_or_none(text: bytes, guids: _Guids) -> int:
    try:
        ref = _schema_ref(text)
    except RecordFault:
        return _NONE
    return guids.number(ref) if isinstance(ref, UUID) else ref

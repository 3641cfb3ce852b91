"""Payloads of one schema through the columns, beside the strict reader and fastavro."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa

from cdc_lakehouse.avro.columnar import Projection, Reader
from cdc_lakehouse.avro.faults import RecordFault
from cdc_lakehouse.avro.memory import Memory
from cdc_lakehouse.avro.writer import WriterSchema, writer_schema


def columns_read(
    schema: Any, payloads: Sequence[bytes], projection: Projection | None = None
) -> tuple[pa.Array, list[bool]]:
    wire = writer_schema(json.dumps(schema)).wire
    data = pa.array(payloads, pa.binary())
    offsets = np.frombuffer(data.buffers()[1], np.int32)[: len(data) + 1].astype(np.int64)
    memory = Memory(data.buffers()[2] or pa.py_buffer(b""))
    values, sound = Reader.of(wire, projection).read(memory, offsets[:-1], offsets[1:])
    values.validate(full=True)
    return values, sound.tolist()


def strictly_sound(schema: Any, payload: bytes) -> bool:
    try:
        writer_schema(json.dumps(schema)).read(payload)
    except RecordFault:
        return False
    return True


def fastavro_takes(parsed: Any, payload: bytes) -> bool:
    """Without a look at bytes that are left."""
    stream = io.BytesIO(payload)
    try:
        fastavro.schemaless_reader(stream, parsed)
    except Exception:  # noqa: BLE001 - it raises whatever comes
        return False
    return stream.tell() == len(payload)


__all__ = ["WriterSchema", "columns_read", "fastavro_takes", "strictly_sound"]

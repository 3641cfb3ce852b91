"""The records of an input as a batch, decoded both ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from cdc_lakehouse.avro.schema_refs import SchemaRef
from fuzz.inputs import Input, Option, inputs_of  # type: ignore[import-not-found]
from fuzz.oracles import found, require_same, small_groups  # type: ignore[import-not-found]

MANY_ROWS = 300
"""More than `avro.constants` asks for."""
SOWN = 3
"""Records of an input to begin with: fewer find less, more are slow."""
NEVER = 1_000_000
LARGEST = 4096
"""Bytes of an input."""
MOST_RECORD_BYTES = 3000
"""Less than that, so that records can be too large."""
Frame = tuple[bytes | None, bytes | None]
"""A record's bytes, and the header that names its schema."""


def head(number: int, options: Option) -> bytes:
    if Option.GUID in options:
        return b"\x01" + UUID(int=number).bytes
    return b"\x00" + number.to_bytes(4, "big")


def _frame(record: bytes, number: int, options: Option) -> Frame:
    first = head(number, options)
    whole = record if Option.WHOLE in options else first + record
    if Option.HEADER in options:
        return whole[len(first) :], whole[: len(first)]
    return whole, None


def frames(case: Input, numbers: Sequence[int]) -> list[Frame]:
    """The records of the case, by turns of each schema, and one that is not there."""
    records = case.records or (b"",)
    frames = [
        _frame(record, numbers[place % len(numbers)], case.options) for place, record in enumerate(records)
    ]
    return [*frames, (None, None)]


def _rows(count: int, options: Option) -> pa.Array:
    """The rows of the batch, by the place of their record; before them the last one, if it is sliced."""
    rows = np.arange(count, dtype=np.int32)
    if Option.MANY in options:
        rows = np.zeros(MANY_ROWS, np.int32)
        rows[1 : 7 * (count - 1) : 7] = np.arange(1, count)  # none where `avro.constants` takes its samples
    return pa.array(np.append(np.int32(count - 1), rows) if Option.SLICED in options else rows)


def require_alike(decode: Any, module: Any, batch: pa.RecordBatch, options: Option) -> pa.RecordBatch | str:
    """The batch read as columns, and each different record once on its own."""
    rows, begin = _rows(len(batch), options), int(Option.SLICED in options)
    with small_groups(module, NEVER):
        singly = found(lambda: decode(batch))
    with small_groups(module, 1):
        by_columns = found(lambda: decode(_received(batch.take(rows)).slice(begin)))
    expected = singly if isinstance(singly, str) else singly.take(rows).slice(begin)
    require_same(by_columns, expected)
    return singly


def sown(name: str, payloads: Sequence[tuple[int, bytes]], options: Option) -> list[bytes]:
    records = [
        (head(number, options) if Option.WHOLE in options else b"") + data
        for number, data in payloads
        if len(data) < LARGEST  # a few captured ones are far longer than an input
    ]
    groups = [records[place : place + SOWN] for place in range(0, len(records), SOWN)]
    return [data for group in groups for data in inputs_of(name, group, [options], LARGEST)]


def _received(batch: pa.RecordBatch) -> pa.RecordBatch:
    """As Spark hands it over: all buffers in one message, with others behind each (`avro.memory`)."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return pa.ipc.open_stream(sink.getvalue()).read_next_batch()


def by_both_names(schemas: dict[Any, str]) -> dict[SchemaRef, str]:
    return {**schemas, **{UUID(int=number): text for number, text in schemas.items()}}

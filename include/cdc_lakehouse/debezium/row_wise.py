"""Records one by one: for what does not pay as columns, and for why a record is bad."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.avro.faults import AvroFault, RecordFault, SchemaFault
from cdc_lakehouse.avro.frames import Frame, id_headers, parse_frame
from cdc_lakehouse.avro.schema_refs import SchemaRef
from cdc_lakehouse.avro.typed.columns import sizes_of
from cdc_lakehouse.debezium.events import Event, key_decoder, value_decoder
from cdc_lakehouse.debezium.headers import KEY_SCHEMA_ID, VALUE_SCHEMA_ID
from cdc_lakehouse.debezium.plans import DecodePlans


class Decoder(Protocol):
    """Of one writer schema; see `debezium.events`."""

    def decode(self, payload: bytes, event: Event) -> None: ...


def events_of(batch: pa.RecordBatch, plans: DecodePlans) -> list[Event]:
    """One per record, in their order. All schemas of sound frames are in the plans."""
    events = [Event(tolerant=plans.null_if_out_of_range) for _ in range(len(batch))]
    admitted = _admitted(batch, events, limit=plans.max_record_bytes)
    headers = batch.column("headers")
    keys = _frames(admitted["key"], id_headers(headers, KEY_SCHEMA_ID), events, "key")
    values = _frames(admitted["value"], id_headers(headers, VALUE_SCHEMA_ID), events, "value")
    find_key = partial(key_decoder, columns=plans.columns.key, table=plans.table)
    find_value = partial(value_decoder, columns=plans.columns.row, table=plans.table, dropped=plans.dropped)
    _decode_all(keys, events, _decoders(keys, plans, find_key, wrong=plans.wrong_keys, place="key"))
    _decode_all(values, events, _decoders(values, plans, find_value, wrong=plans.wrong_values, place="value"))
    for event, key, value in zip(events, keys, values, strict=True):
        event.schema_ids = _number(key), _number(value)
    return events


def _number(frame: Frame | None) -> int | None:
    """Null where a GUID names the schema: it has no number here."""
    return frame.schema if frame is not None and isinstance(frame.schema, int) else None


def _admitted(batch: pa.RecordBatch, events: Sequence[Event], *, limit: int) -> dict[str, list[bytes | None]]:
    """Bytes of the records within the cap; larger ones never become Python objects (`guarantees` §4)."""
    columns = {name: batch.column(name).cast(pa.binary()) for name in ("key", "value")}
    sizes = sizes_of(columns["key"]) + sizes_of(columns["value"])
    too_large = sizes > limit
    for row in np.flatnonzero(too_large).tolist():
        events[row].fail(RecordFault(AvroFault.TOO_LARGE, f"{sizes[row]} bytes, the limit is {limit}"))
    if too_large.any():
        nothing = pa.scalar(None, pa.binary())
        columns = {name: pc.if_else(pa.array(too_large), nothing, each) for name, each in columns.items()}
    return {name: column.to_pylist() for name, column in columns.items()}


def _frames(
    data: Sequence[bytes | None], headers: pa.Array | None, events: Sequence[Event], place: str
) -> list[Frame | None]:
    frames: list[Frame | None] = []
    ids = [None] * len(data) if headers is None else headers.to_pylist()
    for each, header, event in zip(data, ids, events, strict=True):
        frame = None
        if each is not None:
            try:
                frame = parse_frame(each, header)
            except RecordFault as fault:
                event.fail(fault.at(place))
        frames.append(frame)
    return frames


def _decoders(
    frames: Sequence[Frame | None],
    plans: DecodePlans,
    find: Callable[[str], Decoder | RecordFault],
    *,
    wrong: frozenset[SchemaRef],
    place: str,
) -> dict[SchemaRef, Decoder | RecordFault]:
    """Looked up once per batch and schema; compiled once per process."""
    refs = {frame.schema for frame in frames if frame is not None}
    known = {ref: find(plans.schemas[ref]) for ref in refs - plans.unknown - wrong}
    return (
        known
        | {ref: _unknown(ref, place) for ref in refs & plans.unknown}
        | {ref: _misplaced_fault(ref, place) for ref in refs & wrong}
    )


def _unknown(ref: SchemaRef, place: str) -> RecordFault:
    return RecordFault(SchemaFault.UNKNOWN_SCHEMA, f"{place}: schema {ref} is nowhere to be found")


def _misplaced_fault(ref: SchemaRef, place: str) -> RecordFault:
    return RecordFault(
        SchemaFault.WRONG_SCHEMA, f"{place}: schema {ref} belongs to no {place} of this table's topics"
    )


def _decode_all(
    frames: Sequence[Frame | None],
    events: Sequence[Event],
    decoders: Mapping[SchemaRef, Decoder | RecordFault],
) -> None:
    for frame, event in zip(frames, events, strict=True):
        if frame is None:
            continue
        decoder = decoders[frame.schema]
        if isinstance(decoder, RecordFault):
            event.fail(decoder)
        else:
            decoder.decode(frame.payload, event)

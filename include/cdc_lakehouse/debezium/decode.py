"""Kafka records into bronze rows: one row out per record in, in the same order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from cdc_lakehouse.avro.decode import SMALL_GROUP
from cdc_lakehouse.avro.frames import id_headers
from cdc_lakehouse.avro.output import BatchOutgrewError, limited_output
from cdc_lakehouse.avro.typed.columns import sizes_of
from cdc_lakehouse.avro.unknown import UnknownSchemaIdsError
from cdc_lakehouse.debezium.bronze import bronze_of_columns, bronze_of_events, side_types
from cdc_lakehouse.debezium.change_columns import Decoded
from cdc_lakehouse.debezium.events import Event, key_decoder, value_decoder
from cdc_lakehouse.debezium.headers import KEY_SCHEMA_ID, VALUE_SCHEMA_ID
from cdc_lakehouse.debezium.inapplicable import quarantined
from cdc_lakehouse.debezium.plans import DecodePlans
from cdc_lakehouse.debezium.row_wise import events_of
from cdc_lakehouse.debezium.side import Group, Programs, Side


def decode(batch: pa.RecordBatch, plans: DecodePlans) -> pa.RecordBatch:
    """Rows of `bronze_schema(plans.columns)`.

    A record that cannot be decoded, or be applied, becomes a row with `decode_error` and its bytes; it
    never raises and never costs its neighbours anything. Raises `UnknownSchemaIdsError` (`avro.unknown`)
    for the whole batch when records name schemas of which `plans` says nothing.
    """
    return quarantined(_decoded(batch, plans), batch, plans)


def decode_in_parts(
    batch: pa.RecordBatch, plans: DecodePlans
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Yield the records of `batch` part by part, each with its rows: as many at once as memory bears.

    A part that would become too large (`avro.output`), or too large for Arrow or the machine, is halved. A
    single record is bounded by its budgets. Other exceptions of `decode` are raised.
    """
    waiting = [batch]
    while waiting:
        records = waiting.pop()
        rows = _decoded_or_none(records, plans)
        if rows is None:
            middle = len(records) // 2
            waiting += [records.slice(middle), records.slice(0, middle)]
        else:
            yield records, rows


def _decoded_or_none(records: pa.RecordBatch, plans: DecodePlans) -> pa.RecordBatch | None:
    """Return the rows, None where several records are too many at once."""
    if len(records) <= 1:
        return decode(records, plans)
    try:
        with limited_output():
            return decode(records, plans)
    except (BatchOutgrewError, MemoryError, pa.ArrowCapacityError):
        return None
    except pa.ArrowInvalid as exc:
        if "offset overflow" not in str(exc):
            raise
        return None


def _decoded(batch: pa.RecordBatch, plans: DecodePlans) -> pa.RecordBatch:
    work = _Work.of(batch, plans)
    if not work.single.any():
        return bronze_of_columns(batch, work.ids, work.key, work.value, {}, plans)
    if work.single.all():
        return bronze_of_events(batch, events_of(batch, plans), plans)
    single = np.flatnonzero(work.single).tolist()
    events = dict(zip(single, events_of(batch.take(pa.array(single, pa.int64())), plans), strict=True))
    faults = {row: event for row, event in events.items() if work.tells(row, event)}
    rows = bronze_of_columns(batch, work.ids, work.key, work.value, faults, plans)
    others = {row: event for row, event in events.items() if row not in faults}
    if not others:
        return rows
    return _replaced(rows, batch, others, plans)


def _replaced(
    rows: pa.RecordBatch, batch: pa.RecordBatch, events: dict[int, Event], plans: DecodePlans
) -> pa.RecordBatch:
    """`rows` with those of `events`, which were read one by one, in their places."""
    places = np.array(list(events), np.int64)
    singles = bronze_of_events(batch.take(pa.array(places)), list(events.values()), plans)
    order = np.arange(len(batch))
    order[places] = len(batch) + np.arange(len(places))
    columns = [
        pa.concat_arrays([column, single]).take(pa.array(order))
        for column, single in zip(rows.columns, singles.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


@dataclass(frozen=True, slots=True)
class _Work:
    """What came out as columns, and which rows are to be read one by one."""

    ids: tuple[pa.Array, pa.Array]
    key: Decoded
    value: Decoded
    single: np.ndarray
    """Bad rows, whose reader says why, and those that do not pay, or may not be read, as columns."""

    @classmethod
    def of(cls, batch: pa.RecordBatch, plans: DecodePlans) -> _Work:
        key_bytes, value_bytes = (batch.column(name).cast(pa.binary()) for name in ("key", "value"))
        admitted = sizes_of(key_bytes) + sizes_of(value_bytes) <= plans.max_record_bytes
        keys = Side(key_bytes, admitted, id_headers(batch.column("headers"), KEY_SCHEMA_ID))
        values = Side(value_bytes, admitted, id_headers(batch.column("headers"), VALUE_SCHEMA_ID))
        _require_known(keys, values, plans)
        programs = _programs(plans)
        single = ~admitted | keys.misframed | values.misframed
        decoded = []
        for side, own, type_ in zip((keys, values), programs, side_types(plans.columns), strict=True):
            groups = side.grouped(own)
            for group in groups:
                single[group.rows] |= not _pays(group)
            decoded.append(side.read([group for group in groups if _pays(group)], type_))
            single |= side.framed & ~decoded[-1].fits
        return cls((keys.schema_ids(), values.schema_ids()), decoded[0], decoded[1], single)

    def tells(self, row: int, event: Event) -> bool:
        """Whether the columns hold all that is known of a bad row, but for its fault."""
        shown = event.op is not None or event.source is not None or event.transaction is not None
        return (
            event.fault is not None
            and bool(self.value.sound[row] or not shown)
            and bool(self.key.fits[row] or event.key is None)
        )


def _pays(group: Group) -> bool:
    return group.program is not None and len(group.rows) >= SMALL_GROUP


def _require_known(keys: Side, values: Side, plans: DecodePlans) -> None:
    known = plans.schemas.keys() | plans.unknown
    strange_keys = keys.refs - known - plans.wrong_keys
    strange_values = values.refs - known - plans.wrong_values
    if strange_keys or strange_values:
        raise UnknownSchemaIdsError(strange_keys, strange_values)


_latest: list[tuple[DecodePlans, tuple[Programs, Programs]]] = []


def _programs(plans: DecodePlans) -> tuple[Programs, Programs]:
    """A worker decodes with one object of plans at a time; a changed one starts anew."""
    known = _latest[0] if _latest else None  # looked at once: threads may share a process
    if known is None or known[0] is not plans:
        keys = Programs(plans, plans.columns.key, key_decoder, refused=plans.wrong_keys)
        find = partial(value_decoder, dropped=plans.dropped)
        values = Programs(plans, plans.columns.row, find, refused=plans.wrong_values)
        _latest[:] = [(plans, (keys, values))]
        return keys, values
    return known[1]

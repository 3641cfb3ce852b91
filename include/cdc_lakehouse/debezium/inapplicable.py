"""Sound events that nobody can apply: quarantined with their reason, bytes and all (`cdc-semantics` §1).

Rows are judged when they are whole, so how they were decoded makes no difference.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.avro.faults import RecordFault
from cdc_lakehouse.avro.typed.columns import present
from cdc_lakehouse.debezium.bronze import DECODE_ERROR_TYPE, errors_at, null_at, raw_columns
from cdc_lakehouse.debezium.conversions import same_text
from cdc_lakehouse.debezium.faults import EventFault
from cdc_lakehouse.debezium.operations import ROW_OPERATIONS, Operation
from cdc_lakehouse.debezium.plans import DecodePlans

_OPERATIONS = [str(operation) for operation in Operation]
_UNKNOWN = -1
_NOT_SHOWN = ("before", "after", "unavailable", "out_of_range")
"""As for any fault: values of a row that is not whole. What else is known of the event stays."""
_DETAILS = {
    EventFault.UNKNOWN_OPERATION: f"value: op is none of {', '.join(_OPERATIONS)}",
    EventFault.MISSING_KEY: "key: null, in a table with a key",
    EventFault.MISSING_POSITION: "value: source does not tell where the event stands",
    EventFault.MISSING_AFTER: "value: after is null",
}


def _of(operations: Collection[Operation]) -> np.ndarray:
    """By the place of an operation; False for the unknown one, which is the last."""
    return np.array([*(operation in operations for operation in Operation), False])


_NEEDS = {
    EventFault.MISSING_KEY: ("key", _of(ROW_OPERATIONS)),
    EventFault.MISSING_POSITION: ("position", _of({*ROW_OPERATIONS, Operation.TRUNCATE})),
    EventFault.MISSING_AFTER: ("after", _of(ROW_OPERATIONS - {Operation.DELETE})),
}
"""Which column of whose rows is not null. Truncates and messages have no key by nature."""


def quarantined(rows: pa.RecordBatch, batch: pa.RecordBatch, plans: DecodePlans) -> pa.RecordBatch:
    """The bronze `rows` of `batch`, with a fault where an event lacks what applying it takes."""
    found = _faults(rows, batch.column("value"))
    if not found:
        return rows
    faults = {row: RecordFault(fault, _DETAILS[fault]) for row, fault in found.items()}
    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    errors = pc.coalesce(columns["decode_error"], errors_at(faults, len(rows)))
    columns |= {name: null_at(columns[name], sorted(faults)) for name in _NOT_SHOWN}
    columns |= {"decode_error": errors.cast(DECODE_ERROR_TYPE)}
    columns |= raw_columns(batch, errors, keep_all=plans.keep_raw)
    return pa.RecordBatch.from_arrays([columns[name] for name in rows.schema.names], schema=rows.schema)


def _faults(rows: pa.RecordBatch, values: pa.Array) -> Mapping[int, EventFault]:
    """The first fault of each row that has one; rows of tombstones and undecodable ones have none here."""
    op = rows.column("op")
    operations = _operations(op)
    lacking = {EventFault.UNKNOWN_OPERATION: operations == _UNKNOWN}
    for fault, (name, needed) in _NEEDS.items():
        place = rows.schema.get_field_index(name)
        if place >= 0 and rows.column(place).null_count:
            lacking[fault] = needed[operations] & ~present(rows.column(place))
    found: dict[int, EventFault] = {}
    if not any(mask.any() for mask in lacking.values()):
        return found
    judged = present(values) & ~present(rows.column("decode_error"))
    for fault, mask in lacking.items():
        for row in np.flatnonzero(mask & judged).tolist():
            found.setdefault(row, fault)
    return found


def _operations(op: pa.Array) -> np.ndarray:
    """Places in `Operation`."""
    text = same_text(op)
    if text is not None:
        place = _OPERATIONS.index(text) if text in _OPERATIONS else _UNKNOWN
        return np.full(len(op), place)
    places = pc.index_in(op, pa.array(_OPERATIONS))
    found: np.ndarray = places.fill_null(_UNKNOWN).to_numpy(zero_copy_only=False)
    return found

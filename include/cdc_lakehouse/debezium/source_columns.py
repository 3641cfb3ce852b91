"""The `source` and `transaction` blocks of many events: the columnar twin of `source`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lakehouse.avro.typed.columns import numbers_of, validity_of, with_numbers
from cdc_lakehouse.debezium.source import SOURCE_TYPE, TRANSACTION_TYPE

_SENT_AS = {"tx_id": "txId"}
_TIMES = ("ts_us", "ts_ms")
SOURCE_FIELDS = (
    *(_SENT_AS.get(field.name, field.name) for field in SOURCE_TYPE if field.name != "ts"),
    *_TIMES,
)
TRANSACTION_FIELDS = tuple(field.name for field in TRANSACTION_TYPE)
_FARTHEST = (2**63 - 1) // 1000


def source_columns(block: pa.Array) -> pa.StructArray:
    """From the raw block; a field of another kind than expected counts as not sent."""
    if not pa.types.is_struct(block.type):
        return pa.nulls(len(block), SOURCE_TYPE)
    children = [
        _commit_time(block)
        if field.name == "ts"
        else _member(block, _SENT_AS.get(field.name, field.name), field.type)
        for field in SOURCE_TYPE
    ]
    return struct_under(block, SOURCE_TYPE, children)


def transaction_columns(block: pa.Array) -> pa.StructArray:
    if not pa.types.is_struct(block.type):
        return pa.nulls(len(block), TRANSACTION_TYPE)
    children = [_member(block, field.name, field.type) for field in TRANSACTION_TYPE]
    return struct_under(block, TRANSACTION_TYPE, children)


def struct_under(parent: pa.Array, type_: pa.DataType, children: list[pa.Array]) -> pa.StructArray:
    """A struct that is null where `parent` is."""
    return pa.Array.from_buffers(
        type_, len(parent), [validity_of(parent)], parent.null_count, children=children
    )


def _member(block: pa.StructArray, name: str, type_: pa.DataType) -> pa.Array:
    place = block.type.get_field_index(name)
    member = block.field(place) if place >= 0 else None
    if member is not None and member.type == type_:
        return member
    if member is not None and type_ == pa.int64() and member.type == pa.int32():
        return member.cast(type_)
    return pa.nulls(len(block), type_)


def _commit_time(block: pa.StructArray) -> pa.Array:
    micros, millis = (_member(block, name, pa.int64()) for name in _TIMES)
    time = micros
    if micros.null_count:
        found = numbers_of(millis, np.int64)
        far = (found > _FARTHEST) | (found < -_FARTHEST)
        scaled = with_numbers(millis, np.where(far, 0, found) * 1000, pa.int64())
        if far.any():
            scaled = pc.if_else(pa.array(far), pa.scalar(None, pa.int64()), scaled)
        time = pc.coalesce(micros, scaled)
    return time.view(pa.timestamp("us", tz="UTC"))

"""The columnar reader with few columns wanted: what a table that leaves columns out would cost."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import pyarrow as pa

from cdc_lakehouse.avro.columnar import Projection, Reader
from cdc_lakehouse.avro.frames import frame_column
from cdc_lakehouse.debezium.envelope import plan_envelope, plan_key

PROJECTED_SCHEMA = (
    "offset bigint, timestamp timestamp, key struct<id: bigint>, op string, "
    "after struct<customer_id: bigint, status: string>, source struct<lsn: bigint>"
)
_WANTED = Projection(
    (
        ("after", Projection((("customer_id", None), ("status", None)))),
        ("source", Projection((("lsn", None),))),
        ("op", None),
    )
)


class BadRecordsError(Exception):
    """This reader has no way to set bad records apart."""


@lru_cache(maxsize=1)
def projected(key_text: str, value_text: str) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """One writer schema each, and good records only."""
    key = Reader.of(plan_key(key_text, table="bench").schema.wire)
    value = Reader.of(plan_envelope(value_text, table="bench").schema.wire, _WANTED)

    def decode(batch: pa.RecordBatch) -> pa.RecordBatch:
        keys, values = _read(key, batch["key"]), _read(value, batch["value"])
        columns = {
            "offset": batch["offset"],
            "timestamp": batch["timestamp"],
            "key": keys,
            **{name: values.field(name) for name in ("op", "after", "source")},
        }
        return pa.RecordBatch.from_pydict(columns)

    return decode


def _read(reader: Reader, column: pa.Array) -> pa.StructArray:
    frames = frame_column(column)
    values, sound = reader.read(frames.memory, frames.start, frames.end)
    if not (sound & frames.sound).all():
        raise BadRecordsError("a record that is not of its schema")
    return values

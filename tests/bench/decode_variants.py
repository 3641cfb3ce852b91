"""Who decodes on one core, without Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from bench.record_readers import (  # type: ignore[import-not-found]
    ReadRecord,
    confluent_readers,
    fastavro_readers,
)
from bench.streams import Stream, dropped_of, plans_of  # type: ignore[import-not-found]
from cdc_lakehouse.debezium.decode import decode

Decode = Callable[[pa.RecordBatch], Any]


@dataclass(frozen=True, slots=True)
class Variant:
    name: str
    does: str
    gives: str
    """How its output is compared: `objects`, `bronze`, `kept`."""
    prepare: Callable[[Stream], Decode]
    """Everything that happens once per process; what it returns is timed."""


def _one_by_one(read_key: ReadRecord, read_value: ReadRecord) -> Decode:
    def run(batch: pa.RecordBatch) -> list[dict[str, Any]]:
        pairs = zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True)
        return [{"key": read_key(key), "value": read_value(value)} for key, value in pairs]

    return run


def _confluent(stream: Stream) -> Decode:
    return _one_by_one(*confluent_readers(stream.key_text, stream.value_texts))


def _fastavro(stream: Stream) -> Decode:
    return _one_by_one(*fastavro_readers(stream.key_text, stream.value_texts))


def _ours(stream: Stream) -> Decode:
    return partial(decode, plans=plans_of(stream))


def _projected(stream: Stream) -> Decode:
    return partial(decode, plans=plans_of(stream, dropped=dropped_of(stream)))


VARIANTS = {
    each.name: each
    for each in (
        Variant(
            "confluent",
            "AvroDeserializer(schema_str=None), record by record, to dicts",
            "objects",
            _confluent,
        ),
        Variant("fastavro", "schemaless_reader, record by record, to dicts", "objects", _fastavro),
        Variant(
            "ours",
            "bytes to bronze rows in Arrow: typed values, positions, bad rows apart",
            "bronze",
            _ours,
        ),
        Variant(
            "ours_projected",
            "the same for a table that keeps 3 of its columns (`drop_columns`)",
            "kept",
            _projected,
        ),
    )
}

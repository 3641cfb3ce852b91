"""Who decodes: our decoder, the usual way, and plain fastavro as the floor of a loop in Python."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import fastavro
import pyarrow as pa
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from bench.workloads import KEY_ID, VALUE_ID, Workload  # type: ignore[import-not-found]
from cdc_lakehouse.debezium.columns import columns_of
from cdc_lakehouse.debezium.decode import decode
from cdc_lakehouse.debezium.plans import DecodePlans

Decode = Callable[[pa.RecordBatch], Any]


@dataclass(frozen=True, slots=True)
class Variant:
    name: str
    does: str
    prepare: Callable[[Workload], Decode]
    """Everything that happens once per process; what it returns is timed."""


def _ours(workload: Workload) -> Decode:
    plans = DecodePlans(
        table="bench",
        columns=columns_of(workload.key_text, workload.value_text, table="bench"),
        schemas={KEY_ID: workload.key_text, VALUE_ID: workload.value_text},
    )
    return partial(decode, plans=plans)


def _confluent(workload: Workload) -> Decode:
    """One registry for both: its ids must be the ones in the frames."""
    registry = SchemaRegistryClient.new_client({"url": "mock://bench"})
    ids = [
        registry.register_schema(f"bench-{side}", Schema(text, "AVRO"))
        for side, text in (("key", workload.key_text), ("value", workload.value_text))
    ]
    if ids != [KEY_ID, VALUE_ID]:
        raise ValueError(f"the registry gave the ids {ids}")
    key, value = AvroDeserializer(registry, schema_str=None), AvroDeserializer(registry, schema_str=None)
    of_key, of_value = (SerializationContext("bench", f) for f in (MessageField.KEY, MessageField.VALUE))

    def run(batch: pa.RecordBatch) -> list[Any]:
        pairs = zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True)
        return [(key(k, of_key), value(v, of_value)) for k, v in pairs]

    return run


def _fastavro(workload: Workload) -> Decode:
    key = fastavro.parse_schema(json.loads(workload.key_text))
    value = fastavro.parse_schema(json.loads(workload.value_text))
    read = fastavro.schemaless_reader

    def run(batch: pa.RecordBatch) -> list[Any]:
        pairs = zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True)
        return [(read(io.BytesIO(k[5:]), key, None), read(io.BytesIO(v[5:]), value, None)) for k, v in pairs]

    return run


VARIANTS = (
    Variant("cdc_lakehouse", "bytes to bronze rows in Arrow: typed values, positions, bad rows apart", _ours),
    Variant("confluent", "AvroDeserializer(schema_str=None), record by record, to dicts", _confluent),
    Variant("fastavro", "schemaless_reader, record by record, to dicts", _fastavro),
)

"""Readers of single framed records, set up once per process: the usual one, and plain fastavro."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import fastavro
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from bench.streams import KEY_ID  # type: ignore[import-not-found]

ReadRecord = Callable[[bytes], Any]
_FRAME = 5


def confluent_readers(key_text: str, value_texts: Mapping[int, str]) -> tuple[ReadRecord, ReadRecord]:
    """Of keys and of values, with a registry of this process whose ids are the ones in the frames."""
    return _confluent(key_text, tuple(value_texts.items()))


@lru_cache(maxsize=1)
def _confluent(key_text: str, value_texts: tuple[tuple[int, str], ...]) -> tuple[ReadRecord, ReadRecord]:
    registry = SchemaRegistryClient.new_client({"url": "mock://bench"})
    for schema_id, text in ((KEY_ID, key_text), *value_texts):
        side = "key" if schema_id == KEY_ID else "value"
        given = registry.register_schema(f"bench-{side}", Schema(text, "AVRO"))
        if given != schema_id:
            raise ValueError(f"the registry gave the id {given}, the records carry {schema_id}")
    readers = []
    for part in (MessageField.KEY, MessageField.VALUE):
        read, context = AvroDeserializer(registry, schema_str=None), SerializationContext("bench", part)
        readers.append(lambda data, read=read, context=context: read(data, context))
    return readers[0], readers[1]


def fastavro_readers(key_text: str, value_texts: Mapping[int, str]) -> tuple[ReadRecord, ReadRecord]:
    """Of keys and of values, the schema by the id in the frame."""
    key = fastavro.parse_schema(json.loads(key_text))
    values = {schema_id: fastavro.parse_schema(json.loads(text)) for schema_id, text in value_texts.items()}
    read = fastavro.schemaless_reader

    def read_key(data: bytes) -> Any:
        return read(io.BytesIO(data[_FRAME:]), key, None)

    def read_value(data: bytes) -> Any:
        schema = values[int.from_bytes(data[1:_FRAME], "big")]
        return read(io.BytesIO(data[_FRAME:]), schema, None)

    return read_key, read_value

"""Records of a fixed seed in the Confluent frame, as rows of Kafka: the same ones everywhere."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from bench.shapes import Shape, change  # type: ignore[import-not-found]
from cdc_lakehouse.avro.schema_refs import SchemaRef
from cdc_lakehouse.debezium.columns import columns_of
from cdc_lakehouse.debezium.plans import DecodePlans
from unit.debezium_records import envelope_schema, key_schema, raw_schema  # type: ignore[import-not-found]

SEED = 20260101
KEY_ID, FIRST_VALUE_ID = 1, 2
"""An empty registry counts from one."""
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_DAMAGE = 3


@dataclass(frozen=True, slots=True)
class Stream:
    """`versions` of the value's schema arrive mixed; `plans`: they differ on the wire, not in words only."""

    shape: Shape
    versions: int = 1
    plans: bool = False
    corrupt: float = 0.0
    """Share of the values that are cut or that got a wrong byte."""

    @property
    def name(self) -> str:
        kind = "plans" if self.plans else "ids"
        return f"{self.shape.name}-{self.versions}-{kind}-{self.corrupt}"

    @property
    def key_text(self) -> str:
        return json.dumps(key_schema())

    @property
    def value_texts(self) -> Mapping[int, str]:
        """By schema id."""
        return {FIRST_VALUE_ID + number: json.dumps(self._schema(number)) for number in range(self.versions)}

    def clean(self) -> Stream:
        return replace(self, corrupt=0.0)

    def records(self, count: int) -> list[tuple[bytes, bytes]]:
        """(key, value); a longer list begins with the shorter one, up to the damage."""
        return list(_records(self, count))

    def made(self, count: int) -> list[tuple[bytes, bytes]]:
        chance = random.Random(SEED)  # noqa: S311 - not a secret
        mixer = random.Random(SEED + 1)  # noqa: S311
        key = fastavro.parse_schema(raw_schema(json.loads(self.key_text)))
        values = [fastavro.parse_schema(raw_schema(json.loads(text))) for text in self.value_texts.values()]
        found = []
        for number in range(count):
            version = mixer.randrange(self.versions)
            value = framed(FIRST_VALUE_ID + version, values[version], change(self.shape, chance, number))
            found.append((framed(KEY_ID, key, {"id": number}), value))
        return _damaged(found, self.corrupt)

    def _schema(self, number: int) -> Any:
        fields = list(self.shape.fields)
        if self.plans and number:
            random.Random(SEED + number).shuffle(fields)  # noqa: S311
        return {**envelope_schema(fields), "doc": f"version {number}"}


@lru_cache(maxsize=4)
def _records(stream: Stream, count: int) -> tuple[tuple[bytes, bytes], ...]:
    """Several variants are verified with the same ones."""
    return tuple(stream.made(count))


def framed(schema_id: int, schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return b"\x00" + schema_id.to_bytes(4, "big") + out.getvalue()


def _damaged(records: list[tuple[bytes, bytes]], share: float) -> list[tuple[bytes, bytes]]:
    chance, found = random.Random(_DAMAGE), list(records)  # noqa: S311
    for place in chance.sample(range(len(records)), round(len(records) * share)):
        key, value = records[place]
        at = chance.randrange(5, len(value))
        found[place] = key, chance.choice([value[:at], value[:at] + b"\xff" + value[at + 1 :]])
    return found


def kafka_rows(records: list[tuple[bytes, bytes]], *, first_offset: int = 0, partition: int = 0) -> pa.Table:
    """As the Avro UDF gets them from Spark's Kafka source."""
    count = len(records)
    millis = range(1_700_000_000_000, 1_700_000_000_000 + count)
    return pa.table(
        {
            "key": pa.array([key for key, _ in records], pa.binary()),
            "value": pa.array([value for _, value in records], pa.binary()),
            "topic": pa.array(["shop.public.orders"] * count, pa.string()),
            "partition": pa.array([partition] * count, pa.int32()),
            "offset": pa.array(range(first_offset, first_offset + count), pa.int64()),
            "timestamp": pa.array([1000 * each for each in millis], pa.timestamp("us", tz="UTC")),
            "headers": pa.nulls(count, _HEADERS),
        }
    )


def written(stream: Stream, count: int, folder: Path, *, files: int = 1) -> list[Path]:
    """`count` records in as many Parquet files as the topic shall have partitions, unless they are there."""
    each = count // files
    paths = [folder / f"{stream.name}-{count}-{number}.parquet" for number in range(files)]
    if all(path.exists() for path in paths):
        return paths
    records = stream.records(count)
    for number, path in enumerate(paths):
        start = number * each
        rows = kafka_rows(records[start : start + each], first_offset=start, partition=number)
        pq.write_table(rows, path, compression="none", use_dictionary=False, row_group_size=each)
    return paths


KEPT = ("id", "customer_id", "status")
"""Columns of a table that drops the others."""


def dropped_of(stream: Stream) -> frozenset[str]:
    return frozenset(field["name"] for field in stream.shape.fields) - set(KEPT)


def plans_of(stream: Stream, *, dropped: frozenset[str] = frozenset()) -> DecodePlans:
    texts = stream.value_texts
    schemas: dict[SchemaRef, str] = {KEY_ID: stream.key_text, **dict(texts.items())}
    return DecodePlans(
        table="bench",
        columns=columns_of(stream.key_text, texts[FIRST_VALUE_ID], table="bench", dropped=dropped),
        schemas=schemas,
        dropped=dropped,
    )

"""Kafka's records read without Spark's source: gaps, and batches with a timestamp that its type cannot hold.

A stream reads forward from one offset, and gaps lie here and there. Spark's source also turns the timestamp
of a record into microseconds before it knows which columns are wanted, and ends the query where they do not
fit into 64 bits; no option leaves that out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from confluent_kafka import Message
from pyspark.sql import DataFrame, SparkSession

from cdc_lakehouse.bronze.worker_failures import telling_kafka
from cdc_lakehouse.kafka.records import records_between
from cdc_lakehouse.lake.ledger import topic_of
from cdc_lakehouse.lake.spans import Spans, each_span

_UNFIT = re.compile(
    r"Record at topic (\S+) partition (\d+) offset (\d+) has timestamp value -?\d+ that overflows"
)
_SCHEMA = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset LONG, timestamp TIMESTAMP,"
    " headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
_ARROW = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)
_OFFSETS_PER_TASK = 25_000
_RECORDS, _BYTES = 10_000, 16 * 1024 * 1024
"""Of one batch on its way to Spark; a single record may be larger."""
_MOST_MILLIS = (2**63 - 1) // 1000
"""That are microseconds of 64 bits."""


@dataclass(frozen=True, slots=True)
class Piece:
    topic: str
    partition: int
    start: int
    until: int


def unfit_timestamp(text: str) -> str | None:
    """The coordinate of the record that ended a query because of its timestamp."""
    found = _UNFIT.search(text)
    return None if found is None else f"{found.group(1)}/{found.group(2)}@{found.group(3)}"


def read_again(session: SparkSession, spans: Spans, *, settings: Mapping[str, str]) -> DataFrame:
    """What Spark's source would give out of `spans`, but NULL for timestamps that fit nowhere.

    A task reads of one span only, so that each file that is made of it can be held against its span.
    """
    pieces = tuple(pieces_of(spans))
    tasks = session.range(len(pieces), numPartitions=len(pieces))
    return tasks.mapInArrow(partial(_read, pieces=pieces, settings=dict(settings)), _SCHEMA)


def pieces_of(spans: Spans) -> Iterator[Piece]:
    """What one task each reads."""
    for source, partition, (first, until) in each_span(spans):
        for start in range(first, until, _OFFSETS_PER_TASK):
            yield Piece(topic_of(source), partition, start, min(start + _OFFSETS_PER_TASK, until))


def _read(
    ids: Iterator[pa.RecordBatch], *, pieces: tuple[Piece, ...], settings: Mapping[str, str]
) -> Iterator[pa.RecordBatch]:
    for batch in ids:
        for number in batch.column("id").to_pylist():
            piece = pieces[number]
            with telling_kafka():
                found = records_between(
                    settings, piece.topic, piece.partition, start=piece.start, until=piece.until
                )
                yield from batches_of(found)


def batches_of(records: Iterable[Message]) -> Iterator[pa.RecordBatch]:
    rows: list[tuple[object, ...]] = []
    size = 0
    for record in records:
        row = _row(record)
        rows.append(row)
        size += len(record.key() or b"") + len(record.value() or b"")
        if len(rows) >= _RECORDS or size >= _BYTES:
            yield _batch(rows)
            rows, size = [], 0
    if rows:
        yield _batch(rows)


def _row(record: Message) -> tuple[object, ...]:
    _, millis = record.timestamp()
    headers = [{"key": key, "value": value} for key, value in record.headers() or ()]
    return (
        record.key(),
        record.value(),
        record.topic(),
        record.partition(),
        record.offset(),
        millis * 1000 if abs(millis) <= _MOST_MILLIS else None,
        headers or None,
    )


def _batch(rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    columns = [
        pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), _ARROW, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW)

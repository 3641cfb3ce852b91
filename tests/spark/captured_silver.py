"""Captured records through ingest and merge, and what PostgreSQL says of the rows that silver then has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from chain import Chain, table_of  # type: ignore[import-not-found]

from cases.encoding import KafkaRecord  # type: ignore[import-not-found]
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.debezium.decode import decode
from cdc_lakehouse.debezium.headers import NEW_KEY, OLD_KEY
from unit.captured_records import Texts, Topic  # type: ignore[import-not-found]
from unit.postgres_differs import Difference, original_name, said_of, wanted  # type: ignore[import-not-found]
from unit.postgres_says import plain  # type: ignore[import-not-found]


@dataclass(frozen=True)
class Row:
    """What silver must hold of one key: PostgreSQL's words on it, and how the record said it."""

    op: str
    said: Texts
    out_of_range: frozenset[str]


def merged(chain: Chain, topic: Topic) -> Table:
    """Ingest and merge what silver applies of a topic, into a table of its own."""
    name = topic.name.replace(".", "_").replace(" ", "_").lower()
    table: Table = table_of(name, topic.records[0]["topic"], out_of_range="as_null")
    ids = {side: {number for number, _ in topic.frames(side)} for side in ("key", "value")}
    texts = {side: {number: topic.schemas[number] for number in ids[side]} for side in ids}
    chain.registry.register(table.topics[0], keys=texts["key"], values=texts["value"])
    chain.ingest(table, [_kafka_record(topic.records[place]) for place in applied(topic)])
    chain.merge(table)
    return table


def applied(topic: Topic) -> list[int]:
    """Places of the records that are compared: of one row with one key, and no value is left out."""
    rows = decode(topic.batch(), topic.plans(null_if_out_of_range=True))
    found = []
    for place, row in enumerate(rows.select(["op", "key", "unavailable"]).to_pylist()):
        names = {name for name, _ in topic.records[place]["headers"]}
        is_of_a_row = row["op"] in ("c", "u", "r", "d") and row["key"] is not None
        if is_of_a_row and not row["unavailable"] and not names & {NEW_KEY, OLD_KEY}:
            found.append(place)
    return found


def final_rows(topic: Topic) -> dict[str, Row]:
    """Key -> its row after all records that are applied."""
    rows = decode(topic.batch(), topic.plans(null_if_out_of_range=True))
    keys, after = rows.column("key"), rows.column("after")
    held: dict[str, Row] = {}
    for place in applied(topic):
        event = rows.slice(place, 1).select(["op", "source", "out_of_range"]).to_pylist()[0]
        key = _identity(keys, place)
        if event["op"] == "d":
            held.pop(key, None)
            continue
        names = [field.name for field in after.type]
        values = {name: plain(after.field(name))[place] for name in names}
        said = said_of(topic, event["op"], event["source"], values)
        held[key] = Row(event["op"], said.new, frozenset(event["out_of_range"] or ()))
    return held


def silver_differences(topic: Topic, silver: pa.Table) -> Iterator[Difference]:
    """Of every value of every row; a row too many or too few is an `AssertionError`."""
    expected, columns = final_rows(topic), topic.plans().columns
    types = pa.schema([pa.field(column.name, column.type) for column in columns.row])
    rows = pa.table({name: silver[name] for name in types.names}).cast(types).combine_chunks()
    keys = pa.StructArray.from_arrays(
        [_one(rows[column.name]) for column in columns.key], [column.name for column in columns.key]
    )
    places = {_identity(keys, place): place for place in range(len(keys))}
    assert set(places) == set(expected)
    values = {name: plain(_one(rows[name])) for name in types.names}
    for key, row in expected.items():
        for field in types:
            source = original_name(topic, field.name)
            sql, said = topic.types.get(source, "dropped"), row.said.get(source)
            found, right = values[field.name][places[key]], wanted(said, sql, field.type, topic.profile)
            if repr(found) != repr(right):
                out = field.name in row.out_of_range
                yield Difference(topic.profile, topic.relation, field.name, sql, row.op, said, found, out)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)


def _identity(keys: pa.StructArray, place: int) -> str:
    return repr([plain(keys.field(field.name))[place] for field in keys.type])


def _kafka_record(record: dict[str, Any]) -> KafkaRecord:
    return KafkaRecord(
        topic=record["topic"], partition=record["partition"], offset=record["offset"],
        key=record["key"], value=record["value"], headers=tuple(record["headers"]),
    )  # fmt: skip

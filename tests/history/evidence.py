"""What bronze holds of one key, for the person who asks why silver is not what PostgreSQL is."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Consumer, TopicPartition

from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.rows import read_rows
from cdc_lakehouse.lake.state import read_state
from history.comparing import Difference, Key  # type: ignore[import-not-found]
from history.shapes import STAMP  # type: ignore[import-not-found]
from history.tables import Table  # type: ignore[import-not-found]
from unit.postgres_says import plain  # type: ignore[import-not-found]

_MOST = 40
_TOLD = ["op", "position", "partition", "offset", "source", "unavailable", "headers", "decode_error"]


def events_of(lake: Lake, difference: Difference, table: Table) -> list[str]:
    """Events of the key and truncates, in the order of their positions; the last ones if there are many."""
    bronze = read_rows(lake.bronze(difference.table))
    if bronze is None:
        return ["bronze has no such table"]
    rows = _rows(bronze, table, difference.column or STAMP)
    rows = [row for row in rows if _concerns(row, difference.key)]
    rows.sort(key=lambda row: (*_position(row), row["partition"], row["offset"]))
    left_out = [f"… {len(rows) - _MOST} earlier ones"] if len(rows) > _MOST else []
    return [*left_out, *(_line(row, difference.column) for row in rows[-_MOST:])]


def arrived(lake: Lake, table: Table, *, topic: str, kafka: dict[str, str]) -> list[str]:
    """What Kafka has of the table, and bronze of that: was an event lost before or behind it?"""
    state, bronze = read_state(lake.bronze(table.name), table=table.name), read_rows(lake.bronze(table.name))
    if state is None or state.ledger is None or bronze is None:
        return ["bronze has no such table"]
    (source,) = state.ledger.sources
    consumer = Consumer({**kafka, "group.id": "evidence"})
    try:
        lines = []
        for partition in range(table.partitions):
            first, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
            rows = bronze.filter(pc.equal(bronze["partition"], partition)).num_rows
            read = state.ledger.end(source, partition)
            lines.append(
                f"partition {partition}: Kafka has {first} to {end}, bronze read to {read}: {rows} rows"
            )
        return lines
    finally:
        consumer.close()


def _rows(bronze: pa.Table, table: Table, column: str) -> list[dict[str, Any]]:
    """With the key as a tuple and one value of the row: others may be dates that Python does not have."""
    rows: list[dict[str, Any]] = bronze.select(_TOLD).to_pylist()
    keys = [_field(bronze["key" if table.key else "after"], name) for name in table.identity]
    values = _field(bronze["after"], column)
    for number, row in enumerate(rows):
        row["key"] = tuple(values_of[number] for values_of in keys)
        row["value"] = values[number]
    return rows


def _field(structs: pa.ChunkedArray, name: str) -> list[Any]:
    """NULL where the table has, or had, no such column."""
    found: list[Any] = []
    for chunk in structs.chunks:
        known = [chunk.type.field(place).name for place in range(chunk.type.num_fields)]
        found += plain(pc.struct_field(chunk, name)) if name in known else [None] * len(chunk)
    return found


def _concerns(row: dict[str, Any], key: Key) -> bool:
    return row["op"] == "t" or row["decode_error"] is not None or row["key"] == key


def _position(row: dict[str, Any]) -> tuple[int, ...]:
    """Without the epoch, which the ledger has."""
    position = row["position"]
    return () if position is None else tuple(-1 if value is None else value for value in position.values())


def _line(row: dict[str, Any], column: str) -> str:
    source = row["source"] or {}
    headers = [
        (each["key"], bytes(each["value"] or b"").decode(errors="replace")) for each in row["headers"] or []
    ]
    facts = {
        "position": _position(row),
        "at": f"{row['partition']}@{row['offset']}",
        "tx": source.get("tx_id"),
        "snapshot": source.get("snapshot"),
        "unavailable": row["unavailable"],
        "headers": headers,
        "error": row["decode_error"],
        column or STAMP: _value(row["value"]),
    }
    told = " ".join(f"{name}={value}" for name, value in facts.items() if value not in (None, [], "false"))
    return f"{row['op'] or 'tombstone'} {told}"


def _value(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:40]}… ({len(text)})"

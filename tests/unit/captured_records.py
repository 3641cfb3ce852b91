"""What `tests/stack/capture_types.py` captured: records of the real chain, and PostgreSQL's word on them."""

from __future__ import annotations

import json
import lzma
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from pathlib import Path
from typing import Any

import pyarrow as pa

from cdc_lakehouse.debezium.columns import TableColumns, columns_of, evolve_leniently
from cdc_lakehouse.debezium.plans import DecodePlans
from unit.debezium_records import HEADERS  # type: ignore[import-not-found]

FOLDER = Path(__file__).parent / "captured"
Texts = dict[str, str | None]


@dataclass(frozen=True)
class Said:
    """A row before and after one statement, in PostgreSQL's own words."""

    tx: int
    op: str
    old: Texts | None
    new: Texts | None


@dataclass(frozen=True)
class Topic:
    """The records of one table under one connector's settings (`profile`)."""

    profile: str
    relation: str
    records: tuple[dict[str, Any], ...]
    schemas: dict[Any, str]
    said: tuple[Said, ...]
    types: dict[str, str]
    """PostgreSQL's type of each column that the table had in the end."""

    @property
    def name(self) -> str:
        return f"{self.profile}.{self.relation}"

    def batch(self, copies: int = 1) -> pa.RecordBatch:
        records = self.records * copies
        column = {name: [record[name] for record in records] for name in records[0] if name != "headers"}
        headers = [
            [{"key": name, "value": held} for name, held in record["headers"]] if record["headers"] else None
            for record in records
        ]
        moments = [moment * 1000 for moment in column["timestamp"]]
        return pa.record_batch(
            {
                "key": pa.array(column["key"], pa.binary()),
                "value": pa.array(column["value"], pa.binary()),
                "topic": pa.array(column["topic"], pa.string()),
                "partition": pa.array(column["partition"], pa.int32()),
                "offset": pa.array(column["offset"], pa.int64()),
                "timestamp": pa.array(moments, pa.timestamp("us", tz="UTC")),
                "headers": pa.array(headers, HEADERS),
            }
        )

    def frames(self, side: str) -> Iterator[tuple[int, bytes]]:
        """(schema id, payload) of every record that has one."""
        for record in self.records:
            if record[side] is not None:
                yield int.from_bytes(record[side][1:5], "big"), record[side][5:]

    def plans(self, **changes: Any) -> DecodePlans:
        """As the ingest makes them: columns grown from the oldest schema to the newest."""
        key_ids, value_ids = (
            sorted({number for number, _ in self.frames(side)}) for side in ("key", "value")
        )
        grown = [self._columns(key_ids[-1] if key_ids else None, number) for number in value_ids]
        columns = reduce(evolve_leniently, grown)
        known = DecodePlans(table=self.relation, columns=columns, schemas=self.schemas)
        return replace(known, **changes)

    def _columns(self, key_id: int | None, value_id: int) -> TableColumns:
        key = None if key_id is None else self.schemas[key_id]
        return columns_of(key, self.schemas[value_id], table=self.relation)


@lru_cache(maxsize=1)
def topics() -> tuple[Topic, ...]:
    return tuple(topic for path in sorted(FOLDER.glob("*.json.xz")) for topic in _topics_of(path))


def _topics_of(path: Path) -> Iterator[Topic]:
    capture = json.loads(lzma.decompress(path.read_bytes()))
    schemas = {int(number): text for number, text in capture["schemas"].items()}
    by_topic: dict[str, list[dict[str, Any]]] = {}
    for record in capture["records"]:
        by_topic.setdefault(record["topic"], []).append(_record(record))
    for name, records in by_topic.items():
        profile, _, relation = name.split(".")
        relation = relation if relation in capture["types"] else relation.replace("_", " ")
        said = [each for each in capture["said"] if each["relation"] == relation]
        yield Topic(
            profile=profile,
            relation=relation,
            records=tuple(records),
            schemas=schemas,
            said=tuple(Said(each["tx"], each["op"], each["old"], each["new"]) for each in said),
            types=capture["types"][relation],
        )


def _record(record: dict[str, Any]) -> dict[str, Any]:
    headers = [(name, None if held is None else b64decode(held)) for name, held in record.get("headers", [])]
    sides = {side: None if record[side] is None else b64decode(record[side]) for side in ("key", "value")}
    return {**record, **sides, "headers": headers}

"""What a record must become, by fastavro and the conversions of `cdc-semantics` §7 written anew."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

from bench.record_readers import fastavro_readers  # type: ignore[import-not-found]
from bench.streams import KEPT, Stream  # type: ignore[import-not-found]

Row = dict[str, Any]
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a MicroTimestamp has no zone
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "io.debezium.time.Date": lambda days: date(1970, 1, 1) + timedelta(days),
    "io.debezium.time.ZonedTimestamp": lambda text: datetime.fromisoformat(text).astimezone(UTC),
    "io.debezium.time.MicroTimestamp": lambda micros: _EPOCH + timedelta(microseconds=micros),
}
_SAME = ("key", "op", "before", "after", "transaction", "decode_error")
_SOURCE = ("connector", "name", "db", "schema", "table", "lsn")


class WrongRowError(Exception):
    """A variant reads something else than fastavro does."""


class Expected:
    """Of the records of one stream."""

    def __init__(self, stream: Stream) -> None:
        self._read_key, self._read_value = fastavro_readers(stream.key_text, stream.value_texts)
        self._conversions = _conversions(stream)

    def envelope(self, record: tuple[bytes, bytes]) -> Row:
        """`key` and `value` as fastavro reads them, logical types and all."""
        return {"key": self._read_key(record[0]), "value": self._read_value(record[1])}

    def bronze(self, record: tuple[bytes, bytes]) -> Row:
        """The part of the bronze row that tells what the record said."""
        found = self.envelope(record)
        value, source = found["value"], found["value"]["source"]
        return {
            "key": found["key"],
            "op": value["op"],
            "before": _typed(value["before"], self._conversions),
            "after": _typed(value["after"], self._conversions),
            "source": {name: source[name] for name in _SOURCE},
            "tx_id": source["txId"],
            "transaction": value["transaction"],
            "row": source["lsn"],
            "decode_error": None,
        }

    def kept(self, record: tuple[bytes, bytes]) -> Row:
        """`bronze` of a table that drops columns."""
        found = self.bronze(record)
        for side in ("before", "after"):
            row = found[side]
            found[side] = None if row is None else {name: row[name] for name in KEPT}
        return found


def essence(row: Row) -> Row:
    """What `Expected.bronze` tells, of a row that was decoded."""
    source = row["source"] or {}
    return {
        **{name: row[name] for name in _SAME},
        "source": {name: source.get(name) for name in _SOURCE},
        "tx_id": source.get("tx_id"),
        "row": (row["position"] or {}).get("row"),
    }


def _conversions(stream: Stream) -> dict[str, Callable[[Any], Any]]:
    found = {}
    for field in stream.shape.fields:
        branches = field["type"] if isinstance(field["type"], list) else [field["type"]]
        for node in branches:
            if isinstance(node, dict) and node.get("connect.name") in _CONVERSIONS:
                found[field["name"]] = _CONVERSIONS[node["connect.name"]]
    return found


def _typed(row: Row | None, conversions: dict[str, Callable[[Any], Any]]) -> Row | None:
    if row is None:
        return None
    return {
        name: conversions[name](value) if value is not None and name in conversions else value
        for name, value in row.items()
    }

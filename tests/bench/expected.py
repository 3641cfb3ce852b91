"""What a record must become, by fastavro and the conversions of `cdc-semantics` §7 written anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any

from bench.record_readers import fastavro_readers  # type: ignore[import-not-found]
from bench.streams import Stream  # type: ignore[import-not-found]

Row = dict[str, Any]
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a MicroTimestamp has no zone
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "io.debezium.time.Date": lambda days: date(1970, 1, 1) + timedelta(days),
    "io.debezium.time.ZonedTimestamp": lambda text: datetime.fromisoformat(text).astimezone(UTC),
    "io.debezium.time.MicroTimestamp": lambda micros: _EPOCH + timedelta(microseconds=micros),
}


class WrongRowError(Exception):
    """A variant reads something else than fastavro does."""


def envelopes(stream: Stream, records: Iterable[tuple[bytes, bytes]]) -> list[Row]:
    """`key` and `value` as fastavro reads them, logical types and all."""
    read_key, read_value = fastavro_readers(stream.key_text, stream.value_texts)
    return [{"key": read_key(key), "value": read_value(value)} for key, value in records]


def bronze(stream: Stream, found: Row) -> Row:
    """The part of the bronze row that tells what the record said."""
    value, source = found["value"], found["value"]["source"]
    conversions = _conversions(stream)
    return {
        "key": found["key"],
        "op": value["op"],
        "before": _typed(value["before"], conversions),
        "after": _typed(value["after"], conversions),
        "source": {name: source[name] for name in ("connector", "name", "db", "schema", "table", "lsn")},
        "tx_id": source["txId"],
        "transaction": value["transaction"],
        "row": source["lsn"],
        "decode_error": None,
    }


def essence(row: Row) -> Row:
    """The same part of a bronze row that was decoded."""
    source = row["source"] or {}
    return {
        **{name: row[name] for name in ("key", "op", "transaction", "decode_error")},
        "before": plain(row["before"]),
        "after": plain(row["after"]),
        "source": {name: source.get(name) for name in ("connector", "name", "db", "schema", "table", "lsn")},
        "tx_id": source.get("tx_id"),
        "row": (row["position"] or {}).get("row"),
    }


def few(found: Row) -> Row:
    """What the projection keeps."""
    value = found["value"]
    after = value["after"]
    return {
        "key": found["key"],
        "op": value["op"],
        "after": None if after is None else {name: after[name] for name in ("customer_id", "status")},
        "source": {"lsn": value["source"]["lsn"]},
    }


def plain(value: Any) -> Any:
    """Arrow gives a map as pairs."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list):
        pairs = value and all(isinstance(each, tuple) for each in value)
        return dict(value) if pairs else [plain(each) for each in value]
    return value


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

"""Delta tables that consist of a log only, written as ours look: for readers that need no data."""

from __future__ import annotations

import json
from pathlib import Path

from cdc_lakehouse.lake.ledger import APPLICATION_ID, Kind, Ledger


def _field(name: str, kind: object) -> dict[str, object]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


_ERROR = {"type": "struct", "fields": [_field("code", "string"), _field("detail", "string")]}
_SCHEMA = {"type": "struct", "fields": [_field("offset", "long"), _field("decode_error", _ERROR)]}


def ledger_of(table: str, *, topic: str, end: int, kind: Kind = Kind.BRONZE) -> Ledger:
    """Partition 0 read from 0 to `end`, in one step."""
    first = Ledger(kind=kind, pipeline="shop", table=table, cluster_id="c1")
    return first.advanced(
        {f"{topic}@id1": {0: (0, end)}}, attempt="20260101T000000Z-00000001", seen_through=None
    )


def write_log(uri: str, *commits: list[dict[str, object]]) -> None:
    """The first commit creates the table; `commits` follow it."""
    created: list[dict[str, object]] = [
        {"commitInfo": {"timestamp": 1, "operation": "CREATE TABLE", "operationParameters": {}}},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "00000000-0000-0000-0000-000000000001",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(_SCHEMA),
                "partitionColumns": [],
                "configuration": {},
                "createdTime": 1,
            }
        },
    ]
    log = Path(uri.removeprefix("file://"), "_delta_log")
    log.mkdir(parents=True, exist_ok=True)
    for version, actions in enumerate([created, *commits]):
        lines = "".join(f"{json.dumps(action)}\n" for action in actions)
        (log / f"{version:020d}.json").write_text(lines)


def commit_of(ledger: Ledger) -> list[dict[str, object]]:
    return [
        {
            "commitInfo": {
                "timestamp": 2,
                "operation": "STREAMING UPDATE",
                "operationParameters": {},
                "userMetadata": ledger.to_json(),
            }
        },
        {"txn": {"appId": APPLICATION_ID, "version": ledger.seq, "lastUpdated": 1}},
    ]


def foreign(operation: str) -> list[dict[str, object]]:
    return [{"commitInfo": {"timestamp": 3, "operation": operation, "operationParameters": {}}}]

"""Records of a table `items (id, code NOT NULL, note)` with REPLICA IDENTITY FULL, with or without a key."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chain import Chain, table_of  # type: ignore[import-not-found]
from made_up_items import writer_of  # type: ignore[import-not-found]

from cases.case_file import CaseEvent, SourcePosition  # type: ignore[import-not-found]
from cases.encoding import KafkaRecord  # type: ignore[import-not-found]
from cdc_lakehouse.config import models

NAME = "items"
Row = dict[str, Any]


KEYED, KEYLESS = writer_of("id"), writer_of(first_id=200)
COUNTED, COUNTED_FURTHER = (
    writer_of("id", code=kind, first_id=first) for kind, first in (("int!", 300), ("long!", 400))
)


def items(**options: Any) -> models.Table:
    table: models.Table = table_of(NAME, **options)
    return table


def know(chain: Chain, writer: Any = KEYED) -> Chain:
    chain.registry.register(items().topics[0], keys=writer.keys, values=writer.values)
    return chain


def item(number: int, code: Any, note: str | None = "") -> Row:
    return {"id": number, "code": code, "note": note}


def event(
    moment: int,
    op: str,
    before: Row | None,
    after: Row | None,
    *,
    writer: Any = KEYED,
    partition: int = 0,
    offset: int | None = None,
) -> KafkaRecord:
    """What happened at this moment of the source, a transaction of its own."""
    lsn, row = 1000 + 10 * moment, after or before or {}
    record = writer.record(
        CaseEvent(
            at=f"{partition}@{moment}",
            op=op,
            key={"id": row["id"]} if writer.case.table.key else None,
            before=before,
            after=after,
            position=SourcePosition(sequence=(lsn - 10, lsn), lsn=lsn, tx=lsn, order=1),
        )
    )
    return record if offset is None else replace(record, offset=offset)

"""Records of a small table `orders (id, note)`, for laws that are not about one event's meaning."""

from __future__ import annotations

from typing import Any

from chain import TOPIC_ID, Chain, table_of  # type: ignore[import-not-found]

from cases.case_file import Case, CaseEvent, SourcePosition, Table  # type: ignore[import-not-found]
from cases.encoding import KafkaRecord, Writer, writers  # type: ignore[import-not-found]

ORDERS = table_of("orders")
TOPIC = ORDERS.topics[0]
SOURCE = f"{TOPIC}@{TOPIC_ID}"
_CASE = Case.model_construct(
    name="orders",
    table=Table(
        key=("id",),
        columns={"id": "long", "note": "string"},
        columns_from_batch={2: {"id": "long", "note": "string", "priority": "int"}},
    ),
    events=(CaseEvent(at="0@0"), CaseEvent(at="0@1", batch=2)),
)
_WRITERS = writers(_CASE, first_id=100)
OLD, NEW = _WRITERS[1], _WRITERS[2]
"""Before and after the table got its column `priority`."""


def know(chain: Chain, writer: Writer = OLD) -> None:
    (key_id, key), (value_id, value) = writer.schemas.items()
    chain.registry.register(TOPIC, keys={key_id: key}, values={value_id: value})


def order(offset: int, number: int, *, op: str = "c", writer: Writer = OLD, **values: Any) -> KafkaRecord:
    """The change at `offset`; a later offset is a later position."""
    lsn = 1000 + 10 * offset
    row = None if op == "d" else {"id": number, "note": None, **values}
    return writer.record(
        CaseEvent(
            at=f"0@{offset}",
            op=op,
            key={"id": number},
            after=row,
            position=SourcePosition(sequence=(lsn - 10, lsn), lsn=lsn, tx=lsn, order=1),
        )
    )


def tombstone(offset: int, number: int) -> KafkaRecord:
    return OLD.record(CaseEvent(at=f"0@{offset}", key={"id": number}))


def truncate(offset: int) -> KafkaRecord:
    return OLD.record(CaseEvent(at=f"0@{offset}", op="t"))


def notes(rows: list[dict[str, Any]]) -> dict[int, str]:
    """Silver's rows, or bronze's as (offset -> note)."""
    if rows and "offset" in rows[0]:
        return {row["offset"]: row["after"]["note"] for row in rows if row["after"]}
    return {row["id"]: row["note"] for row in rows}

"""Records of a table `people (id, region, amount, big)`; an event without `big` does not tell it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from chain import Chain, table_of  # type: ignore[import-not-found]

from cases.case_file import Case, CaseEvent, SourcePosition, Table  # type: ignore[import-not-found]
from cases.encoding import KafkaRecord, writers  # type: ignore[import-not-found]
from cdc_lakehouse.config import models

NAME = "people"
UNTOLD = "__debezium_unavailable_value"
_CASE = Case.model_construct(
    name=NAME,
    table=Table(key=("id",), columns={"id": "long", "region": "string", "amount": "int", "big": "string"}),
    events=(CaseEvent(at="0@0"),),
)
WRITER = writers(_CASE, first_id=100)[1]


def people(**options: Any) -> models.Table:
    table: models.Table = table_of(NAME, **options)
    return table


def know(chain: Chain) -> None:
    (key_id, key), (value_id, value) = WRITER.schemas.items()
    chain.registry.register(people().topics[0], keys={key_id: key}, values={value_id: value})


def change(
    moment: int,
    number: int,
    region: str | None = None,
    *,
    op: str = "u",
    amount: int | None = 1,
    big: str | None = UNTOLD,
    partition: int = 0,
    order: int = 1,
) -> KafkaRecord:
    """What happened at this moment of the source; `d` tells nothing but the key."""
    lsn = 1000 + 10 * moment
    row = {"id": number, "region": region, "amount": amount, "big": big}
    return WRITER.record(
        CaseEvent(
            at=f"{partition}@{moment}",
            op=op,
            key={"id": number},
            after=None if op == "d" else row,
            position=SourcePosition(sequence=(lsn - 10, lsn), lsn=lsn, tx=lsn, order=order),
        )
    )


def merged(chain: Chain, table: models.Table, *batches: Sequence[KafkaRecord]) -> Chain:
    """A merge behind each batch, whose records stand in Kafka in their order here."""
    know(chain)
    ends: Counter[int] = Counter()
    for batch in batches:
        sent = []
        for record in batch:
            sent.append(replace(record, offset=ends[record.partition]))
            ends[record.partition] += 1
        chain.ingest(table, sent)
        chain.merge(table)
    return chain


def told(chain: Chain, *columns: str) -> list[tuple[Any, ...]]:
    """Silver's rows in the order of their first column."""
    return sorted(tuple(row[name] for name in columns) for row in chain.silver(people()))

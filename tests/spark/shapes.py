"""A table `shaped` whose columns change: writers of one shape after the other, and their records."""

from __future__ import annotations

from typing import Any

from chain import Chain, table_of  # type: ignore[import-not-found]

from cases.case_file import Case, CaseEvent, SourcePosition, Table  # type: ignore[import-not-found]
from cases.encoding import KafkaRecord, Writer, writers  # type: ignore[import-not-found]

NAME = "shaped"
KEY_ID = 100
SECOND, THIRD = 102, 103
"""Ids of the value schemas of later shapes; the first has 101."""
SHAPED = table_of(NAME)
STRICT = table_of(NAME, on_schema_change="strict")
BESIDE = table_of(NAME, on_schema_change="side_column")


def shapes(*columns: dict[str, str], key: str = "long", first_id: int = KEY_ID) -> list[Writer]:
    """One writer per shape; each has the key `id` before its columns."""
    own = [{"id": key, **each} for each in columns]
    case = Case.model_construct(
        name=NAME,
        table=Table(key=("id",), columns=own[0], columns_from_batch=dict(enumerate(own, 1))),
        events=tuple(CaseEvent(at=f"0@{batch}", batch=batch) for batch in range(1, len(own) + 1)),
    )
    return list(writers(case, first_id=first_id).values())


def know(chain: Chain, *known: Writer, topic: str = SHAPED.topics[0]) -> None:
    """The registry learns the schemas of these writers."""
    for writer in known:
        (key_id, key), (value_id, value) = writer.schemas.items()
        chain.registry.register(topic, keys={key_id: key}, values={value_id: value})


def record(writer: Writer, offset: int, number: Any, *, op: str = "c", **values: Any) -> KafkaRecord:
    """A change of row `number`; a later offset is a later position."""
    lsn = 1000 + 10 * offset
    return writer.record(
        CaseEvent(
            at=f"0@{offset}",
            op=op,
            key={"id": number},
            after={"id": number, **values},
            position=SourcePosition(sequence=(lsn - 10, lsn), lsn=lsn, tx=lsn, order=1),
        )
    )


def rows(chain: Chain) -> dict[Any, dict[str, Any]]:
    """Silver's rows by their key, without columns of ours."""
    return {
        row["id"]: {name: value for name, value in row.items() if not name.startswith(("_cdc_", "id"))}
        for row in chain.silver(SHAPED)
    }


def types(chain: Chain) -> dict[str, str]:
    """Silver's columns but for the key and ours, in Spark's words."""
    schema = chain.session.read.format("delta").load(chain.lake.silver(NAME)).schema
    return {
        field.name: field.dataType.simpleString()
        for field in schema
        if not field.name.startswith(("_cdc_", "id"))
    }


def logged(chain: Chain) -> list[tuple[Any, ...]]:
    """Lines of the log of changes, by column: change, column, was, now, schema ids."""
    told = ("change", "column", "was", "now", "value_schema_ids")
    found = chain.rows(chain.lake.schema_changes, "column", "silver_step")
    return [tuple(row[name] for name in told) for row in found]

"""The records of the tier, the same in every run, and what bronze and silver must hold of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import history_oracle  # type: ignore[import-not-found]
import oracle  # type: ignore[import-not-found]
from cases.case_file import Case, CaseEvent, SourcePosition, Table  # type: ignore[import-not-found]
from cases.encoding import KafkaRecord, Writer, writers  # type: ignore[import-not-found]
from cases.rows import specified_silver, told_bronze  # type: ignore[import-not-found]
from cdc_lakehouse.avro.schema_refs import SchemaRef
from cdc_lakehouse.debezium.columns import columns_of, evolve_leniently
from cdc_lakehouse.debezium.decode import decode
from cdc_lakehouse.debezium.plans import DecodePlans

Coordinate = tuple[str, int, int]
Row = dict[str, Any]
PARTITIONS = {"orders": 2, "customers": 1}
MOVED, MOVED_PARTITIONS = "parcels", 2
"""A table that no recording has: its second partition is new, and has keys of the first one by now."""
UNKNOWN_AT_FIRST = 3
"""The schema that no registry knows while the first round is ingested: its records go to the quarantine."""
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@dataclass(frozen=True, slots=True)
class Step:
    """One record to be sent. Steps of one `transaction` are committed, or aborted, together."""

    partition: int
    event: CaseEvent
    schema: int = 1
    transaction: str | None = None

    @property
    def is_aborted(self) -> bool:
        return self.transaction is not None and self.transaction.startswith("aborted")


@dataclass(frozen=True, slots=True)
class Sent:
    """A record that consumers see, where the broker put it."""

    table: str
    partition: int
    offset: int
    record: KafkaRecord


def case_of(table: str) -> Case:
    columns = {"id": "long", "note": "string"}
    return Case.model_construct(
        name=table,
        table=Table(
            key=("id",),
            columns=columns,
            columns_from_batch={
                2: {**columns, "priority": "int"},
                UNKNOWN_AT_FIRST: {**columns, "weight": "int"},
            },
        ),
        events=tuple(CaseEvent(at=f"0@{batch}", batch=batch) for batch in (1, 2, UNKNOWN_AT_FIRST)),
    )


CASES = {table: case_of(table) for table in (*PARTITIONS, MOVED)}
WRITERS: Mapping[str, Mapping[int, Writer]] = {
    table: writers(case, first_id=100 * place) for place, (table, case) in enumerate(CASES.items(), 1)
}


def topic_of(table: str) -> str:
    return str(CASES[table].topic)


def _change(partition: int, at: int, op: str, key: int, note: str | None = None, **more: Any) -> Step:
    """`at` is the place in the source's log: what is sent again has the place it had."""
    schema = more.pop("schema", 1)
    row = None if op == "d" else {"id": key, "note": note, **_extra(schema, at)}
    event = CaseEvent(at="0@0", op=op, key={"id": key}, after=row, position=_place(at))
    return Step(partition, event, schema=schema, **more)


def _extra(schema: int, at: int) -> Row:
    """What the other schemas have beside the columns of the first one."""
    return {2: {"priority": at}, UNKNOWN_AT_FIRST: {"weight": at}}.get(schema, {})


def _truncate(partition: int, at: int) -> Step:
    return Step(partition, CaseEvent(at="0@0", op="t", position=_place(at)))


def _place(at: int) -> SourcePosition:
    return SourcePosition(sequence=(1000 + at * 10, 1005 + at * 10), lsn=1005 + at * 10, tx=at, order=1)


def _tombstone(partition: int, key: int) -> Step:
    return Step(partition, CaseEvent(at="0@0", key={"id": key}))


def _junk(partition: int, key: int) -> Step:
    return Step(partition, CaseEvent(at="0@0", key={"id": key}, value_hex="00ffffff"))


def steps(table: str, *, round_: int) -> Iterator[Step]:
    """Round 1 is there before the first run, round 2 before the second."""
    for partition in range(PARTITIONS[table]):
        yield from (_first_round if round_ == 1 else _second_round)(partition)


def _first_round(partition: int) -> Iterator[Step]:
    first = 10 * partition
    yield _change(partition, 1, "c", first, "one")
    yield _change(partition, 2, "c", first + 1, "two")
    yield _change(partition, 3, "u", first, "one again", transaction=f"aborted-{partition}")
    yield _change(partition, 3, "c", first + 2, "three", transaction=f"kept-{partition}")
    yield _change(partition, 4, "u", first, "uno", transaction=f"kept-{partition}")
    yield _junk(partition, first + 1)
    # Three that wait in the quarantine: older than its row's deletion, newest of its key, alone with its key.
    yield _change(partition, 5, "u", first + 1, "dos", schema=UNKNOWN_AT_FIRST)
    yield _change(partition, 6, "d", first + 1)
    yield _tombstone(partition, first + 1)
    yield _change(partition, 7, "c", first + 3, "four")
    yield _change(partition, 8, "u", first + 3, "vier", schema=UNKNOWN_AT_FIRST)
    yield _change(partition, 9, "c", first + 5, "six", schema=UNKNOWN_AT_FIRST)


def _second_round(partition: int) -> Iterator[Step]:
    first = 10 * partition
    yield _change(partition, 10, "u", first + 2, "tres")
    # The connector was restarted: a block is sent again, older than what silver holds by now.
    yield _change(partition, 1, "c", first, "one")
    yield _change(partition, 3, "c", first + 2, "three")
    yield _change(partition, 4, "u", first, "uno")
    yield _change(partition, 11, "c", first + 4, "five", schema=2)
    yield _junk(partition, first + 4)
    yield _change(partition, 12, "u", first + 3, "quattro", schema=2)
    yield _change(partition, 13, "d", first + 4)
    yield _tombstone(partition, first + 4)


def moved_steps(*, round_: int) -> Iterator[Step]:
    """Of `MOVED`. The second round stands in the new partition and begins with a block that is sent again."""
    if round_ == 1:
        yield _change(0, 1, "c", 1, "one")
        yield _change(0, 2, "c", 2, "two")
        yield _truncate(0, 3)
        yield _change(0, 4, "c", 1, "uno")
        yield _change(0, 5, "c", 4, "four")
        yield _change(0, 6, "u", 1, "eins")
        yield _change(0, 7, "d", 1)
        yield _change(0, 8, "c", 3, "three")
        return
    yield _change(1, 2, "c", 2, "two")
    yield _change(1, 6, "u", 1, "eins")
    yield _change(1, 9, "d", 4)
    yield _change(1, 10, "c", 5, "five")


def bytes_of(table: str, step: Step) -> KafkaRecord:
    return WRITERS[table][step.schema].record(step.event)


def decoded(table: str, sent: Sequence[Sent]) -> dict[Coordinate, Row]:
    """Bronze in the words of a case; the decoder itself is proved by `tests/unit`."""
    texts: dict[SchemaRef, str] = {}
    columns = None
    for writer in WRITERS[table].values():
        new = columns_of(*writer.schemas.values(), table=table)
        columns = new if columns is None else evolve_leniently(columns, new)
        texts.update(writer.schemas)
    assert columns is not None
    rows = decode(_batch(sent), DecodePlans(table=table, columns=columns, schemas=texts)).to_pylist()
    return {(row["topic"], row["partition"], row["offset"]): told_bronze(CASES[table], row) for row in rows}


def with_all_columns(row: Row | None, table: str) -> Row | None:
    """As if the row had been written when its table had all columns."""
    return None if row is None else {**dict.fromkeys(CASES[table].all_columns), **row}


def silver_of(bronze: Mapping[Coordinate, Row], *, table: str) -> dict[tuple[Any, ...], Row]:
    """By the oracle, in the words of a case. Its writers take turns: each drops what only another sends."""
    silver = oracle.silver_of(_by_writers(bronze, table))
    return {key: specified_silver(CASES[table], row) for key, row in silver.items()}


def history_of(bronze: Mapping[Coordinate, Row], *, table: str) -> list[Row]:
    """Every version of the rows, by the oracle."""
    versions: list[Row] = history_oracle.history_of(_by_writers(bronze, table))
    return versions


def _by_writers(bronze: Mapping[Coordinate, Row], table: str) -> list[Row]:
    rows = [{**bronze[at], "sent": _sent_columns(bronze[at], table)} for at in sorted(bronze)]
    return list(oracle.with_dropped_columns(rows, policy="keep"))


def _sent_columns(row: Row, table: str) -> set[str]:
    """Those of its writer: each other one has a value wherever it is sent."""
    more = {name for name, value in (row["after"] or {}).items() if value is not None}
    return {*CASES[table].table.columns, *more}


def _batch(sent: Sequence[Sent]) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "key": pa.array([each.record.key for each in sent], pa.binary()),
            "value": pa.array([each.record.value for each in sent], pa.binary()),
            "topic": pa.array([topic_of(each.table) for each in sent], pa.string()),
            "partition": pa.array([each.partition for each in sent], pa.int32()),
            "offset": pa.array([each.offset for each in sent], pa.int64()),
            "timestamp": pa.array([0] * len(sent), pa.timestamp("us", tz="UTC")),
            "headers": pa.array([None] * len(sent), _HEADERS),
        }
    )

"""Case files: one behaviour each, as events in and literal rows out (`style`, "A case file")."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

FOLDER = Path(__file__).parent
TOPIC_PREFIX = "cases."

Coordinate = Annotated[str, StringConstraints(pattern=r"^\d+@\d+$")]
"""`<partition>@<offset>`; the topic is the case's own."""
Hex = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{2})*$")]
Row = dict[str, Any]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Table(_Part):
    key: tuple[str, ...]
    """Empty where the table has none."""
    columns: dict[str, str]
    """Column -> `short`, `int`, `long`, `float`, `double`, `string`, `date`, `timestamp`, `decimal(p,s)` or
    `enum(a,b)`; a key's is required unless it ends in `?`, any other's if it ends in `!`. Behind `=` its
    default, as in `int=7!`."""
    mode: Literal["upsert", "append"] = "upsert"
    topic_column: str = ""
    """The setting of that name; silver's key ends with it."""
    shared_keys: Literal["refuse", "one_row"] = "refuse"
    on_dropped_column: Literal["keep", "as_null"] = "keep"
    own_key: tuple[str, ...] = ()
    """`key` of the table in the pipeline: columns that tell its rows apart instead of the message key."""
    deletes: Literal["hard", "soft"] = "hard"
    filter: str = ""
    """The rule for silver's rows, in SQL that Spark and SQLite read alike."""
    tracked: tuple[str, ...] | None = None
    """`columns` of `history`, in a case that tells one."""
    columns_from_batch: dict[int, dict[str, str]] = {}
    """What the writer sends from that batch on, where it is not `columns`."""
    side_columns: tuple[str, ...] = ()
    """Columns that the table gets beside others; with any, it says `on_schema_change: side_column`."""

    @property
    def key_widens(self) -> bool:
        """Whether a later batch sends a column of silver's key with another type."""
        types = [{columns[name] for name in self.identity} for columns in self._sent]
        return any(each != types[0] for each in types)

    @property
    def added_with_default(self) -> dict[str, str]:
        """Column that a later batch adds and that may not be NULL -> its type and default."""
        later = {name: kind for columns in self.columns_from_batch.values() for name, kind in columns.items()}
        return {
            name: kind
            for name, kind in later.items()
            if "=" in kind and kind[-1] == "!" and name not in self.columns
        }

    @property
    def _sent(self) -> list[dict[str, str]]:
        return [self.columns, *self.columns_from_batch.values()]

    @property
    def identity(self) -> tuple[str, ...]:
        """Columns of silver's key, as the source sends them."""
        return self.own_key or self.key


class SourcePosition(_Part):
    """What Debezium says of an event's place, in Debezium's words."""

    snapshot: str = "false"
    sequence: tuple[int | None, int | None] | None = None
    lsn: int | None = None
    tx: int | None = None
    order: int | None = None
    ts: int = 0
    """Milliseconds of its commit, by the source's clock, behind a moment that all cases share."""


class CaseEvent(_Part):
    """One Kafka record. Without `op` and `value_hex` it is a tombstone."""

    at: Coordinate
    topic: str = ""
    """Behind the name of the case, where several topics feed the table; each has partitions of its own."""
    batch: int = 1
    op: str | None = None
    key: Row | None = None
    before: Row | None = None
    after: Row | None = None
    position: SourcePosition = SourcePosition()
    headers: dict[str, str] = {}
    key_hex: Hex | None = None
    value_hex: Hex | None = None

    @property
    def coordinate(self) -> tuple[int, int]:
        partition, _, offset = self.at.partition("@")
        return int(partition), int(offset)


class BronzeRow(_Part):
    """What is not written is null; `raw_*: sent` are the bytes of the event."""

    at: Coordinate
    op: str | None = None
    position: Annotated[tuple[int, ...], Field(min_length=6, max_length=6)] | None = None
    """phase, commit, streamed, row, order_in_tx, kind."""
    tx: int | None = None
    key: Row | None = None
    before: Row | None = None
    after: Row | None = None
    unavailable: tuple[str, ...] | None = None
    headers: tuple[str, ...] | None = None
    """Their names."""
    error: str | None = None
    raw_key: Hex | Literal["sent"] | None = None
    raw_value: Hex | Literal["sent"] | None = None


class Refusal(_Part):
    """Silver is not touched."""

    error: Literal["SCHEMA_MISFIT", "KEY_NOT_TOLD", "KEY_NOT_UNIQUE", "KEY_IN_TWO_TOPICS"]


class Case(_Part):
    name: str
    why: Annotated[str, StringConstraints(min_length=20, max_length=200)]
    table: Table
    events: Annotated[tuple[CaseEvent, ...], Field(min_length=1)]
    bronze: tuple[BronzeRow, ...]
    silver: Refusal | tuple[Row, ...]
    history: tuple[Row, ...] | None = None
    """With any, the table says `history`. A version tells its times as `ts: [from, to]` if one is not 0."""

    @model_validator(mode="after")
    def _every_event_has_its_bronze_row(self) -> Case:
        if [event.at for event in self.events] != [row.at for row in self.bronze]:
            raise ValueError("bronze must hold one row per event, in their order")
        if sorted(self.events, key=lambda event: (event.batch, event.coordinate)) != list(self.events):
            raise ValueError("events must stand in the order in which they are read")
        return self

    @property
    def topic(self) -> str:
        return TOPIC_PREFIX + self.name

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.topic + event.topic for event in self.events))

    @property
    def concerns_the_table(self) -> bool:
        """Whether it opens a source epoch, clears the table, filters it or names its topics."""
        rows = () if isinstance(self.silver, Refusal) else self.silver
        opens = any(row["_cdc_position"][0] > 0 for row in rows)
        topics = len(self.topics) > 1
        return opens or topics or bool(self.table.filter) or any(event.op == "t" for event in self.events)

    @property
    def history_option(self) -> bool | dict[str, tuple[str, ...]]:
        """What the table says."""
        tracked = self.table.tracked
        return self.history is not None if tracked is None else {"columns": tracked}

    @property
    def batches(self) -> int:
        return max(event.batch for event in self.events)

    @property
    def drops_columns(self) -> bool:
        """Return whether the writer of the newest event lacks a column that another one sends."""
        events = [
            (row.position, event.batch)
            for event, row in zip(self.events, self.bronze, strict=True)
            if row.position is not None and row.op in ("c", "u", "d", "r")
        ]
        columns = self.columns_of_batch(max(events, default=((), 1))[1])
        sent = [self.table.columns, *self.table.columns_from_batch.values()]
        return any(not each.keys() <= columns.keys() for each in sent)

    def columns_of_batch(self, batch: int) -> dict[str, str]:
        """Columns that the writer of `batch` sends."""
        return self.table.columns_from_batch.get(batch, self.table.columns)

    @property
    def all_columns(self) -> tuple[str, ...]:
        writers = [self.table.columns, *self.table.columns_from_batch.values()]
        names = (name for columns in writers for name in columns)
        return tuple(dict.fromkeys([*names, *self.table.side_columns]))

    @property
    def silver_columns(self) -> tuple[str, ...]:
        """Of silver and its history, but for the system's."""
        return (*self.all_columns, self.table.topic_column) if self.table.topic_column else self.all_columns


def read_case(path: Path) -> Case:
    """Raises `ValidationError` for a file that is not a case."""
    return Case.model_validate({"name": path.stem, **yaml.safe_load(path.read_text(encoding="utf-8"))})


@cache
def all_cases() -> tuple[Case, ...]:
    return tuple(read_case(path) for path in sorted(FOLDER.glob("*.yaml")))


def applied_cases() -> tuple[Case, ...]:
    return tuple(case for case in all_cases() if not isinstance(case.silver, Refusal))


def refused_cases() -> tuple[Case, ...]:
    return tuple(case for case in all_cases() if isinstance(case.silver, Refusal))


def historic_cases() -> tuple[Case, ...]:
    return tuple(case for case in all_cases() if case.history is not None)

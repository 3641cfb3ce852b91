"""The shape of a pipeline file: one source, its tables, its schedule."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, available_timezones

from croniter import croniter
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

NAME_PATTERN = r"^[a-z][a-z0-9_]{0,62}$"
_DURATION = re.compile(r"^(\d+)([mhd])$")
_DURATION_UNIT = {"m": "minutes", "h": "hours", "d": "days"}


def _known_cron(text: str) -> str:
    if not croniter.is_valid(text):
        raise ValueError(f"{text!r} is not a cron expression of five fields, like '*/15 * * * *'")
    return text


def _known_timezone(text: str) -> str:
    if text not in available_timezones():
        raise ValueError(f"{text!r} is not a time zone, like 'UTC' or 'Europe/Vienna'")
    return text


def _known_start(text: str) -> str:
    if text in ("earliest", "latest"):
        return text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is neither 'earliest', 'latest' nor a time like '2026-01-31T00:00:00Z'") from None
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} needs a time zone, like '2026-01-31T00:00:00Z'")
    return text


def _known_duration(text: str) -> str:
    if not _DURATION.match(text):
        raise ValueError(f"{text!r} is not a duration like '90m', '12h' or '7d'")
    return text


Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
TopicName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,249}$")]
Cron = Annotated[str, AfterValidator(_known_cron)]
TimeZone = Annotated[str, AfterValidator(_known_timezone)]
Start = Annotated[str, AfterValidator(_known_start)]
Duration = Annotated[str, AfterValidator(_known_duration)]


def duration(text: str) -> timedelta:
    """`7d` as a timedelta; the text was checked when the file was read."""
    amount, unit = _DURATION.findall(text)[0]
    return timedelta(**{_DURATION_UNIT[unit]: int(amount)})


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Raw(StrEnum):
    UNDECODABLE = "undecodable"
    ALWAYS = "always"


class Connections(_Section):
    """Ids of the Airflow connections that the pipeline uses."""

    kafka: str = "lakehouse_kafka"
    registry: str = "lakehouse_registry"
    storage: str = "lakehouse_storage"
    spark: str = "spark_default"


class Retry(_Section):
    """What Airflow does after an exit code that asks for another try."""

    attempts: Annotated[int, Field(ge=0, le=20)] = 4
    delay_seconds: Annotated[int, Field(ge=1)] = 30
    """Before the first retry; it doubles from try to try."""
    max_delay_seconds: Annotated[int, Field(ge=1)] = 600


class Maintenance(_Section):
    schedule: Cron = "0 3 * * *"
    vacuum_retention: Duration = "7d"
    """How long files that no version needs are kept for readers and for time travel."""
    checkpoint_retention: Duration = "1d"
    """How long the scratch checkpoint of an attempt is kept for whoever looks into it."""


class TableOptions(_Section):
    """What a table may set; `defaults` sets it for all tables of the pipeline."""

    deletes: Literal["hard"] = "hard"
    """A row deleted at the source disappears from silver."""
    raw: Raw = Raw.UNDECODABLE
    """Which records keep their bytes in bronze."""
    on_quarantine: Literal["continue"] = "continue"
    """Later events of a key go on while an earlier record of it could not be decoded."""
    max_offsets_per_trigger: Annotated[int, Field(ge=1)] = 500_000
    """Records per micro-batch over all partitions: one bronze commit each."""


class Table(TableOptions):
    name: Name
    topics: Annotated[tuple[TopicName, ...], Field(min_length=1)]
    """The Kafka topic(s) that carry this table's changes."""
    group: Name = "main"
    """Tables of one group share a Spark application and a column of tasks in Airflow."""


class Pipeline(_Section):
    version: Literal[1]
    name: Name
    """Also the file's name and the folder of its tables."""
    owner: str
    """Who is called when a task stays red."""
    schedule: Cron
    timezone: TimeZone = "UTC"
    start_date: date
    start: Start = "earliest"
    """Where a table that has no rows yet begins: `earliest`, `latest` or a time with its zone."""
    connections: Connections = Connections()
    retry: Retry = Retry()
    execution_timeout: Duration = "2h"
    """A task that runs longer is ended and tried again."""
    maintenance: Maintenance = Maintenance()
    defaults: TableOptions = TableOptions()
    tables: Annotated[tuple[Table, ...], Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _give_tables_the_defaults(cls, document: object) -> object:
        """A table's own options, written beside its name, stand above `defaults`."""
        if not isinstance(document, dict) or not isinstance(document.get("tables"), list):
            return document
        defaults = document.get("defaults", {})
        if not isinstance(defaults, dict):
            return document
        tables = [{**defaults, **table} if isinstance(table, dict) else table for table in document["tables"]]
        return {**document, "tables": tables}

    @model_validator(mode="after")
    def _names_are_unique(self) -> Pipeline:
        names = [table.name for table in self.tables]
        topics = [topic for table in self.tables for topic in table.topics]
        for what, values in (("table", names), ("topic", topics)):
            twice = sorted({value for value in values if values.count(value) > 1})
            if twice:
                raise ValueError(f"the {what} {twice[0]!r} is listed twice")
        return self

    @property
    def groups(self) -> dict[str, tuple[Table, ...]]:
        """Group name -> its tables, both in the order of the file."""
        found: dict[str, tuple[Table, ...]] = {}
        for table in self.tables:
            found[table.group] = (*found.get(table.group, ()), table)
        return found

    def table(self, name: str) -> Table:
        """Raises `KeyError` for a table that the pipeline does not have."""
        return {table.name: table for table in self.tables}[name]

    @property
    def start_moment(self) -> datetime:
        """First instant of the schedule, in the pipeline's own zone."""
        return datetime(
            self.start_date.year, self.start_date.month, self.start_date.day, tzinfo=ZoneInfo(self.timezone)
        )

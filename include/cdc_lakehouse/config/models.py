"""The shape of a pipeline file: one source, its tables, its schedule."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from croniter import CroniterError, croniter
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

NAME_PATTERN = r"^[a-z][a-z0-9_]{0,62}$"
TOPIC_PATTERN = r"^[A-Za-z0-9._-]{1,249}$"
DURATION_PATTERN = r"^([1-9][0-9]{0,4})([mhd])$"
_DURATION = re.compile(DURATION_PATTERN)
_DURATION_UNIT = {"m": "minutes", "h": "hours", "d": "days"}
_SIDE_TABLES = ("__history", "__tombstones", "__quarantine")
_OWN_TASKS = ("outcome", "optimize", "vacuum", "clean_checkpoints")
_LEAP_YEAR = datetime(2024, 1, 1, tzinfo=UTC)


def _table_name(name: str) -> str:
    if name.endswith(_SIDE_TABLES):
        raise ValueError(f"{name!r} ends like one of the tables that stand beside a silver table")
    return name


def _pipeline_name(name: str) -> str:
    if name.endswith("_maintenance"):
        raise ValueError(f"{name!r} would take the DAG id that another pipeline's maintenance has")
    return name


def _group_name(name: str) -> str:
    if name in _OWN_TASKS:
        raise ValueError(f"{name!r} is the id of a task of every pipeline")
    return name


def _known_topic(name: str) -> str:
    if name in (".", ".."):
        raise ValueError(f"{name!r} is not a topic name")
    return name


def _known_cron(text: str) -> str:
    if len(text.split()) != 5 or not croniter.is_valid(text):
        raise ValueError(f"{text!r} is not a cron expression of five fields, like '*/15 * * * *'")
    try:
        croniter(text, _LEAP_YEAR).get_next(datetime)
    except CroniterError:
        raise ValueError(f"{text!r} names a moment that never comes") from None
    return text


def _known_timezone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"{text!r} is not a time zone, like 'UTC' or 'Europe/Vienna'") from None
    return text


def _known_start(text: str) -> str:
    if text in ("earliest", "latest"):
        return text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is neither 'earliest', 'latest' nor a time like '2026-01-31T00:00:00Z'"
        ) from None
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} needs a time zone, like '2026-01-31T00:00:00Z'")
    return text


def _known_duration(text: str) -> str:
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration like '90m', '12h' or '7d'")
    return text


Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
TableName = Annotated[Name, AfterValidator(_table_name)]
PipelineName = Annotated[Name, AfterValidator(_pipeline_name)]
GroupName = Annotated[Name, AfterValidator(_group_name)]
TopicName = Annotated[str, StringConstraints(pattern=TOPIC_PATTERN), AfterValidator(_known_topic)]
TablesAtOnce = Annotated[int, Field(ge=1, le=64)]
Text = Annotated[str, StringConstraints(min_length=1)]
Cron = Annotated[str, AfterValidator(_known_cron), Field(json_schema_extra={"examples": ["*/15 * * * *"]})]
TimeZone = Annotated[str, AfterValidator(_known_timezone), Field(json_schema_extra={"examples": ["UTC"]})]
Start = Annotated[
    str, AfterValidator(_known_start), Field(json_schema_extra={"examples": ["earliest", "latest"]})
]
Duration = Annotated[
    str, AfterValidator(_known_duration), Field(json_schema_extra={"pattern": DURATION_PATTERN})
]


def duration(text: str) -> timedelta:
    """`7d` as a timedelta; the text was checked when the file was read."""
    amount, unit = _DURATION.findall(text)[0]
    return timedelta(**{_DURATION_UNIT[unit]: int(amount)})


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Raw(StrEnum):
    UNDECODABLE = "undecodable"
    ALWAYS = "always"


class OutOfRange(StrEnum):
    UNDECODABLE = "undecodable"
    AS_NULL = "as_null"
    """YAML reads a bare `null` as nothing."""


class Connections(_Section):
    """Ids of the Airflow connections that the pipeline uses."""

    kafka: Text = "lakehouse_kafka"
    registry: Text = "lakehouse_registry"
    storage: Text = "lakehouse_storage"
    spark: Text = "spark_default"


class Retry(_Section):
    """What Airflow does after an exit code that asks for another try."""

    attempts: Annotated[int, Field(ge=0, le=20)] = 4
    delay_seconds: Annotated[int, Field(ge=1)] = 30
    """Before the first retry; it doubles from try to try."""
    max_delay_seconds: Annotated[int, Field(ge=1)] = 600


class Maintenance(_Section):
    """When old files go, and which."""

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
    out_of_range: OutOfRange = OutOfRange.UNDECODABLE
    """What becomes of a value that its column cannot hold (infinity, a year beyond 9999): `undecodable` keeps
    the whole record out of silver, `as_null` stores NULL, names the column in bronze and counts the row."""
    on_quarantine: Literal["continue"] = "continue"
    """Later events of a key go on while an earlier record of it could not be decoded."""
    max_offsets_per_trigger: Annotated[int, Field(ge=1)] = 500_000
    """Records per micro-batch over all partitions: one bronze commit each."""


class Table(TableOptions):
    """One source table and the topics that carry its changes."""

    name: TableName
    """Its folder in bronze and in silver, and its name in Airflow."""
    topics: Annotated[tuple[TopicName, ...], Field(min_length=1)]
    """The Kafka topic(s) that carry this table's changes."""
    drop_columns: tuple[Text, ...] = ()
    """Columns of the source that never enter the lake; decoding passes over them."""
    group: GroupName = "main"
    """Tables of one group share a Spark application and a column of tasks in Airflow."""


class Pipeline(_Section):
    """One source, its tables, its schedule."""

    version: Literal[1]
    """Of this file's form."""
    name: PipelineName
    """Also the file's name and the folder of its tables."""
    owner: Text
    """Who is called when a task stays red."""
    schedule: Cron
    """When the drain starts, as a cron expression of five fields."""
    timezone: TimeZone = "UTC"
    """Of the schedule."""
    start_date: date
    """First day of the schedule."""
    start: Start = "earliest"
    """Where a table that has no rows yet begins: `earliest`, `latest` or a time with its zone."""
    connections: Connections = Connections()
    retry: Retry = Retry()
    execution_timeout: Duration = "2h"
    """A task that runs longer is ended and tried again."""
    tables_at_once: TablesAtOnce | None = None
    """How many tables of a Spark application are worked on side by side; by default two per core of the
    machine that the application is started on, 16 at most."""
    tables_at_once_by_group: dict[GroupName, TablesAtOnce] = {}
    """The same for single groups."""
    maintenance: Maintenance = Maintenance()
    defaults: TableOptions = TableOptions()
    tables: Annotated[tuple[Table, ...], Field(min_length=1)]
    """One entry per source table."""

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
        names = Counter(table.name for table in self.tables)
        topics = Counter(topic for table in self.tables for topic in table.topics)
        for what, counted in (("table", names), ("topic", topics)):
            twice = [value for value, times in counted.items() if times > 1]
            if twice:
                raise ValueError(f"the {what} {twice[0]!r} is listed twice")
        return self

    @model_validator(mode="after")
    def _groups_are_known(self) -> Pipeline:
        for group in self.tables_at_once_by_group:
            if group not in self.groups:
                raise ValueError(f"`tables_at_once_by_group` names the group {group!r}, which no table is in")
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

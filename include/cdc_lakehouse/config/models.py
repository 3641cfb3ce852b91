"""The shape of a pipeline file: one source, its tables, its schedule."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError, PydanticKnownError

from cdc_lakehouse.config.column_choice import ColumnChoice
from cdc_lakehouse.config.history_choice import HistoryChoice
from cdc_lakehouse.config.key_choice import KeyChoice, TopicColumn
from cdc_lakehouse.config.values import (
    DEFAULT_PLACEHOLDER,
    CheckpointRetention,
    Cron,
    Duration,
    GroupName,
    PipelineName,
    Placeholders,
    ReportsRetention,
    Start,
    TableName,
    TablesAtOnce,
    Text,
    TimeZone,
    TombstoneRetention,
    TopicName,
    VacuumRetention,
    duration,
)

LISTED_TWICE = "listed_twice"
"""The kind of an error that `problems.duplicate_problems` tells with its lines."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Raw(StrEnum):
    UNDECODABLE = "undecodable"
    ALWAYS = "always"


class OutOfRange(StrEnum):
    UNDECODABLE = "undecodable"
    AS_NULL = "as_null"
    """YAML reads a bare `null` as nothing."""


class Mode(StrEnum):
    UPSERT = "upsert"
    APPEND = "append"


class Deletes(StrEnum):
    HARD = "hard"
    SOFT = "soft"


class OnQuarantine(StrEnum):
    CONTINUE = "continue"
    HOLD = "hold"
    STOP = "stop"


class OnSchemaChange(StrEnum):
    EVOLVE = "evolve"
    STRICT = "strict"
    SIDE_COLUMN = "side_column"


class SharedKeys(StrEnum):
    REFUSE = "refuse"
    ONE_ROW = "one_row"


class OnDroppedColumn(StrEnum):
    KEEP = "keep"
    AS_NULL = "as_null"
    """YAML reads a bare `null` as nothing."""
    STOP = "stop"


class Connections(_Section):
    """Ids of the Airflow connections that the pipeline uses."""

    kafka: Text = "lakehouse_kafka"
    registry: Text = "lakehouse_registry"
    storage: Text = "lakehouse_storage"
    source: Text = "lakehouse_source"
    """The source database: `verify` asks it, and each ingest for *valid-through* where Airflow knows it."""
    connect: Text = "lakehouse_connect"
    """Kafka Connect's REST interface: where Airflow knows it, each ingest asks whether the connector runs."""
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
    vacuum_retention: VacuumRetention = "7d"
    """Retention of files that no version needs, for readers and for time travel: at least one day and twice
    `execution_timeout`, at most 30 days."""
    checkpoint_retention: CheckpointRetention = "1d"
    """Retention of the scratch checkpoint of an attempt, for inspection, from the end of the attempt on."""
    tombstone_retention: TombstoneRetention = "30d"
    """How long silver remembers where a row was deleted; an older event that is read later than that can
    bring the row back. At least one day and twice `execution_timeout`."""
    reports_retention: ReportsRetention = "30d"
    """Retention of the reports of runs, at least one day; the newest seven days that had runs keep theirs."""
    conflict_nights: Annotated[int, Field(ge=1, le=365)] = 7
    """On how many nights in a row OPTIMIZE of a table may give way to merges and do nothing, before its task
    is red (`OPTIMIZE_OVERDUE`)."""


class QuarantineLimit(_Section):
    """The table stops before it commits more undecodable records than this allows."""

    records: Annotated[int, Field(ge=0)] = 10_000
    """Of one run."""
    share: Annotated[float, Field(gt=0, le=1)] = 0.2
    """Share of the records of a run, and of the runs before it since the share was last kept; it counts from
    the hundredth undecodable one on. Below 1, a run of nothing but undecodable records stops the table
    too."""


class DeletesLimit(_Section):
    """A merge that would remove more rows than both allow stops before it writes, and asks a person."""

    rows: Annotated[int, Field(ge=0)] = 1_000
    share: Annotated[float, Field(ge=0, le=1)] = 0.2
    """Share of the rows that the table has before; with 1 no merge is ever stopped."""


class TableOptions(_Section):
    """What a table may set; `defaults` sets it for all tables of the pipeline."""

    deletes: Deletes = Deletes.HARD
    """What becomes of a row that is deleted at the source: `hard` takes it out of silver, `soft` keeps it as
    it was and says so in `_cdc_deleted`."""
    deletes_limit: DeletesLimit = DeletesLimit()
    """Number of rows that one merge may take out of silver, or mark as deleted, and out of the open versions
    of its history, before a person has to agree (`accept_deletes`)."""
    history: HistoryChoice = None
    """Whether `<table>__history` beside silver keeps every version of every row, from when to when it stood;
    `{columns: [a, b]}` begins a new one only where one of these changes."""
    raw: Raw = Raw.UNDECODABLE
    """Which records keep their bytes in bronze."""
    out_of_range: OutOfRange = OutOfRange.UNDECODABLE
    """What becomes of a value that its column cannot hold (infinity, a year beyond 9999): `undecodable` keeps
    the whole record out of silver, `as_null` stores NULL, names the column in bronze and counts the row."""
    on_quarantine: OnQuarantine = OnQuarantine.CONTINUE
    """While bronze holds records that could not be decoded: `continue` merges the others, later events of the
    same key too; `hold` leaves their keys as they were before and merges all others; `stop` leaves silver as
    it is until none is open."""
    on_schema_change: OnSchemaChange = OnSchemaChange.EVOLVE
    """When the source's columns change: `evolve` adds columns and widens types, and stops silver of the table
    at a type that cannot hold what is there; `side_column` gives the values of such a type a column of their
    own, `x__v2` beside `x`; `strict` stops silver at any change until a person has taken it."""
    on_dropped_column: OnDroppedColumn = OnDroppedColumn.KEEP
    """Values in silver of a column that the source no longer sends: `keep` leaves every row the value that
    was sent last; `as_null` makes it NULL in all rows; `stop` stops silver of the table until a person has
    chosen one of them."""
    quarantine_limit: QuarantineLimit = QuarantineLimit()
    deletion_vectors: bool = True
    """Whether silver marks rows as gone instead of writing their files again; `false` for readers that do not
    know deletion vectors: merges of such a table take several times as long."""
    max_offsets_per_trigger: Annotated[int, Field(ge=1)] = 500_000
    """Records per micro-batch over all partitions: one bronze commit each."""
    fresh_within: Duration | None = None
    """Promised age of the table while its source goes on: an ingest that can show changes of the source to be
    missing for longer ends red. Needs the connection `source`, and a connector with a heartbeat."""
    verify: bool = False
    """Whether each run compares silver with the source database, row by row, after the merge."""


class Table(TableOptions):
    """One source table and the topics that carry its changes."""

    name: TableName
    """Its folder in bronze and in silver, and its name in Airflow."""
    topics: Annotated[tuple[TopicName, ...], Field(min_length=1)]
    """The Kafka topic(s) that carry this table's changes; `*` stands for any part of a name without a dot."""
    mode: Mode | None = None
    """What silver holds: one row per key as the source has it (`upsert`), or one row per event, never changed
    again (`append`). By default `upsert` for tables with a key and `append` for those without."""
    drop_columns: tuple[Text, ...] = ()
    """Columns of the source that never enter the lake; decoding passes over them."""
    columns: ColumnChoice = ColumnChoice()
    """Which columns silver has, under which names, and which of them masked; bronze has them as they come."""
    key: KeyChoice = None
    """Columns of silver that tell its rows apart, instead of Kafka's message key. No two rows of the source
    may have the same values there at one time, and none NULL; a source that shows otherwise stops silver of
    the table."""
    topic_column: TopicColumn = None
    """A column of this name in silver has the topic that a row came from, and is part of its key: for a table
    that several topics feed whose rows count from one in each of them, as shards and tenants do."""
    shared_keys: SharedKeys = SharedKeys.REFUSE
    """Meaning of a key that comes from two topics of the table, without `topic_column`: `refuse` stops silver
    of the table at it; `one_row` takes it for one row, from whichever topic it comes, as after a rename."""
    filter: Text | None = None
    """A condition in SQL on silver's columns: silver has the rows for which it is true, and loses a row, or
    gets it with all its values, when that changes."""
    group: GroupName = "main"
    """Tables of one group share a Spark application and a column of tasks in Airflow."""

    def __hash__(self) -> int:
        """Some settings are mappings, which have none; a pipeline has one table of a name."""
        return hash(self.name)


class Discover(TableOptions):
    """Tables that nobody lists: one per topic, named like the last part of it, in small letters."""

    topics: Annotated[tuple[TopicName, ...], Field(min_length=1)]
    """Which topics; `*` stands for any part of a name without a dot, as in `shop.public.*`."""
    exclude: tuple[TopicName, ...] = ()
    """Topics that are not taken."""
    include: tuple[TopicName, ...] = ()
    """Topics that are taken whatever their names: those named as only Kafka, Connect and Debezium name their
    own are left alone otherwise, and listed in log and report of every run."""
    mode: Mode | None = None
    """What silver of these tables holds, as of a table."""
    group: GroupName = "main"
    """The group that these tables are in."""

    def table(self, name: str, *, topics: tuple[str, ...]) -> Table:
        """One of these tables, with the options of all."""
        options = self.model_dump(include=set(TableOptions.model_fields))
        return Table(name=name, topics=topics, mode=self.mode, group=self.group, **options)


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
    """First record of a table: `earliest`, `latest` or a time with its zone. The first run that sees its
    topic states it; topics that join the table later are read from their first record, or from that time."""
    connections: Connections = Connections()
    retry: Retry = Retry()
    execution_timeout: Duration = "2h"
    """A task that runs longer is ended and tried again."""
    unavailable_value_placeholder: Placeholders = (DEFAULT_PLACEHOLDER,)
    """The connector's `unavailable.value.placeholder`, which it sends for a value that did not change and
    that the log did not contain (TOAST): text, or `hex:` and bytes. Another one would be taken for a
    value. A list where it was changed: records that were sent before have the older one."""
    signal_table: Text = "public.debezium_signal"
    """The table by which snapshots are asked for, the connector's `signal.data.collection`: statements that
    advice prints name it."""
    unproven_source: bool = False
    """Read tables of connectors other than PostgreSQL although the order of their changes was never proven;
    every report repeats it."""
    four_eyes: bool = False
    """Whether the plan of a repair must be approved by another person than the one who triggered it."""
    tables_at_once: TablesAtOnce | None = None
    """How many tables of a Spark application are worked on side by side; by default two per core of the
    machine that the application is started on, 16 at most."""
    tables_at_once_by_group: dict[GroupName, TablesAtOnce] = {}
    """The same for single groups."""
    maintenance: Maintenance = Maintenance()
    defaults: TableOptions = TableOptions()
    discover: Discover | None = None
    """Tables that are made by themselves when their topic appears."""
    tables: tuple[Table, ...] = Field(default=(), validate_default=True)
    """One entry per source table; may be left out beside `discover`."""

    @field_validator("tables")
    @classmethod
    def _some_tables(cls, tables: tuple[Table, ...], info: ValidationInfo) -> tuple[Table, ...]:
        if not tables and info.data.get("discover") is None:
            raise PydanticKnownError("too_short", {"field_type": "List", "min_length": 1, "actual_length": 0})
        return tables

    @model_validator(mode="before")
    @classmethod
    def _give_tables_the_defaults(cls, document: object) -> object:
        """A table's own options, written beside its name, stand above `defaults`."""
        if not isinstance(document, dict) or not isinstance(document.get("defaults", {}), dict):
            return document
        defaults, found = document.get("defaults", {}), dict(document)
        if isinstance(found.get("tables"), list):
            found["tables"] = [{**defaults, **t} if isinstance(t, dict) else t for t in found["tables"]]
        if isinstance(found.get("discover"), dict):
            found["discover"] = {**defaults, **found["discover"]}
        return found

    @model_validator(mode="after")
    def _names_are_unique(self) -> Pipeline:
        names = Counter(table.name for table in self.tables)
        topics = Counter(topic for table in self.tables for topic in table.topics)
        for what, counted in (("table", names), ("topic", topics)):
            twice = [value for value, times in counted.items() if times > 1]
            if twice:
                raise PydanticCustomError(LISTED_TWICE, f"the {what} {twice[0]!r} is listed twice")
        return self

    @model_validator(mode="after")
    def _groups_are_known(self) -> Pipeline:
        for group in self.tables_at_once_by_group:
            if group not in self.groups:
                raise ValueError(f"`tables_at_once_by_group` names the group {group!r}, which no table is in")
        return self

    @model_validator(mode="after")
    def _retentions_outlive_attempts(self) -> Pipeline:
        """Refuse retentions that an attempt outlives: it may commit a file long after it wrote it."""
        for key in ("vacuum_retention", "tombstone_retention"):
            value = getattr(self.maintenance, key)
            if duration(value) < 2 * duration(self.execution_timeout):
                raise ValueError(
                    f"`maintenance.{key}` {value!r} must be at least twice `execution_timeout` "
                    f"({self.execution_timeout!r}): an attempt that still runs needs what it keeps"
                )
        return self

    @property
    def groups(self) -> dict[str, tuple[Table, ...]]:
        """Group name -> its tables, both in the order of the file; a group may wait for discovered ones."""
        found: dict[str, tuple[Table, ...]] = {}
        for table in self.tables:
            found[table.group] = (*found.get(table.group, ()), table)
        if self.discover is not None:
            found.setdefault(self.discover.group, ())
        return found

    def verifies(self, group: str) -> bool:
        """Whether a table of this group, listed or to be discovered, asks for it."""
        discover = self.discover
        discovered = discover is not None and discover.group == group and discover.verify
        return discovered or any(table.verify for table in self.groups[group])

    def table(self, name: str) -> Table:
        """Raises `KeyError` for a table that the pipeline does not have."""
        return {table.name: table for table in self.tables}[name]

    @property
    def start_moment(self) -> datetime:
        """First instant of the schedule, in the pipeline's own zone."""
        return datetime(
            self.start_date.year, self.start_date.month, self.start_date.day, tzinfo=ZoneInfo(self.timezone)
        )

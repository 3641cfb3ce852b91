"""What Airflow and a job tell each other: request, result, exit codes, environment names.

Standard library only: the Airflow side, the job side and the tests import it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import IntEnum, StrEnum
from typing import Any

from cdc_lakehouse.headlines import MAINTENANCE_COUNTS, maintenance_headline
from cdc_lakehouse.run_modes import Recompute, RepairStep

RESULT_VERSION = 1
ENV_RESULT = "CDC_LAKEHOUSE_RESULT"
"""File that the job writes its `JobResult` to, as JSON."""
ENV_OPTIONS = "CDC_LAKEHOUSE_OPTIONS"
"""`JobRequest.options` as JSON: they may hold keys of rows, and a command line is seen by everybody."""
ENV_PIPELINES = "CDC_LAKEHOUSE_PIPELINES"
"""Folder that holds `<pipeline>.yaml`; by default `include/pipelines` beside the package."""
ENV_CONNECTION_KAFKA = "CDC_LAKEHOUSE_CONN_KAFKA"
ENV_CONNECTION_REGISTRY = "CDC_LAKEHOUSE_CONN_REGISTRY"
ENV_CONNECTION_STORAGE = "CDC_LAKEHOUSE_CONN_STORAGE"
ENV_CONNECTION_SOURCE = "CDC_LAKEHOUSE_CONN_SOURCE"
ENV_CONNECTION_CONNECT = "CDC_LAKEHOUSE_CONN_CONNECT"
"""One connection as JSON: {"host", "port", "login", "password", "extra": {...}}."""
ENV_SPARK_SECRET = "CDC_LAKEHOUSE_SPARK_SECRET"  # noqa: S105 - the name of a variable
"""What a Spark cluster asks of drivers and executors, which talk to nobody else."""


class ExitCode(IntEnum):
    """What the caller should do (`architecture` §7)."""

    DONE = 0
    DATA = 65
    BUG = 70
    RETRY = 75
    CONFIG = 78


MAX_SOURCE_EPOCH = 2**53 - 1
"""The highest number that a person may give a source epoch: JSON numbers are exact up to here, and Spark's
64 bits leave room for those that records open above it."""

HAS_WORK = 3
"""What a look at all tables ends with when one is not idle, for whatever reason: the job itself must run."""
_WORST_FIRST = (ExitCode.BUG, ExitCode.RETRY, ExitCode.DATA, ExitCode.CONFIG)


def combined_exit_code(codes: Iterable[ExitCode]) -> ExitCode:
    """One code for a group: retryable ones win, so that healthy tables get their retry."""
    present = set(codes)
    return next((code for code in _WORST_FIRST if code in present), ExitCode.DONE)


class Job(StrEnum):
    BRONZE_INGEST = "bronze_ingest"
    SILVER_MERGE = "silver_merge"
    VERIFY = "verify"
    OPTIMIZE = "optimize"
    VACUUM = "vacuum"
    QUARANTINE_REPLAY = "quarantine_replay"
    CLEAN_CHECKPOINTS = "clean_checkpoints"
    REBUILD = "rebuild"
    RESYNC = "resync"
    REWIND = "rewind"
    RETIRE = "retire"
    ERASE = "erase"
    QUARANTINE_REPAIR = "quarantine"
    PREFLIGHT = "preflight"


REPAIRS = (Job.REBUILD, Job.RESYNC, Job.REWIND, Job.RETIRE, Job.ERASE, Job.QUARANTINE_REPAIR)
"""Jobs that replace or remove what a table holds: each is planned, approved, carried out and verified."""


class TableStatus(StrEnum):
    ADVANCED = "advanced"
    IDLE = "idle"
    PLANNED = "planned"
    """It has work; a dry run or a look did none of it."""
    FAILED = "failed"
    SUPERSEDED = "superseded"
    REPAIRED = "repaired"
    """An approved plan was carried out by this run."""
    MAINTAINED = "maintained"
    """Readers find the same rows in other files, or files that nobody needed are gone."""
    VERIFIED = "verified"
    """Compared with its source; `verification` says what came of it."""


@dataclass(frozen=True, slots=True)
class AirflowContext:
    """Who asked; absent when a person runs the job from a shell."""

    dag_id: str
    run_id: str
    task_id: str
    try_number: int
    triggered_by: str | None = None
    """The user who triggered the run, as Airflow knows it; None for a run of the schedule."""
    note: str | None = None
    """Why it was triggered, from its form."""


@dataclass(frozen=True, slots=True)
class JobRequest:
    """One application: a job, a pipeline and the tables of one group."""

    job: Job
    pipeline: str
    tables: tuple[str, ...]
    """Empty: all of the pipeline, or of `group`."""
    group: str | None = None
    """All tables of this group, those included that are to be discovered."""
    airflow: AirflowContext | None = None
    from_time: str | None = None
    """With `until_time` the interval that is made complete, as a person or Airflow wrote it."""
    until_time: str | None = None
    recompute: Recompute | None = None
    """None for what is usual: all keys of the interval."""
    also_drain: bool = False
    """Whether a run with an interval reads what is new in Kafka, too; one without always does."""
    accept_gap: tuple[str, ...] = ()
    """`<table>=<topic>/<partition>:<from>-<until>,…`: offsets that Kafka no longer holds and that are given
    up, as `OFFSETS_LOST` prints them."""
    source_epoch: Mapping[str, int] = field(default_factory=dict)
    """Table -> number of the incarnation that its source, or its topic, is from here on."""
    acknowledge_foreign: tuple[str, ...] = ()
    """`<table>=v<version>@step<step>`: a change by hand that was meant, as `FOREIGN_COMMIT` prints it."""
    stop_reading: tuple[str, ...] = ()
    """`<table>=step<step>`: a table that is gone at its source, as `TOPIC_MISSING` prints it."""
    accept_deletes: tuple[str, ...] = ()
    """`<table>=step<step>@v<version>:<rows>rows`: rows that may go, as `DELETES_LIMIT` prints it."""
    fill_gaps: tuple[str, ...] = ()
    """Tables whose gaps are read again, as far as Kafka still holds them."""
    close_cases: tuple[str, ...] = ()
    """`<table>=<code>:<count>records@<digest>` or `<table>=<topic>/<partition>@<offset>`: undecodable records
    that nobody waits for any more, as `make quarantine` prints them."""
    reopen_cases: tuple[str, ...] = ()
    """The same of closed ones that are to be decoded again after all."""
    step: RepairStep | None = None
    """The part of a repair that is asked for; None for all other jobs."""
    plans: tuple[str, ...] = ()
    """`<table>=<digest>`: plans of a repair, as its step `plan` printed them."""
    approved_by: str | None = None
    """The user who approved `plans`."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Name -> value of what only this kind of repair knows."""
    dry_run: bool = False

    def to_arguments(self) -> list[str]:
        """The command line of `spark_jobs/<job>.py`; what is not given is absent, never empty."""
        arguments = ["--pipeline", self.pipeline]
        if self.tables:
            arguments += ["--tables", ",".join(self.tables)]
        if self.group is not None:
            arguments += ["--group", self.group]
        if self.airflow is not None:
            arguments += ["--dag-id", self.airflow.dag_id, "--dag-run-id", self.airflow.run_id]
            arguments += ["--task-id", self.airflow.task_id, "--try", str(self.airflow.try_number)]
            # With `=`: a note may begin like an option.
            said = (("--triggered-by", self.airflow.triggered_by), ("--note", self.airflow.note))
            arguments += [f"{option}={text}" for option, text in said if text]
        if self.from_time is not None:
            arguments += ["--from-time", self.from_time]
        if self.until_time is not None:
            arguments += ["--until-time", self.until_time]
        if self.recompute is not None:
            arguments += ["--recompute", self.recompute]
        if self.also_drain:
            arguments.append("--also-drain")
        arguments += [*self._decisions(), *self._repair()]
        return [*arguments, "--dry-run"] if self.dry_run else arguments

    def _decisions(self) -> list[str]:
        named = (
            ("--accept-gap", self.accept_gap),
            ("--source-epoch", [f"{table}={epoch}" for table, epoch in self.source_epoch.items()]),
            ("--acknowledge-foreign", self.acknowledge_foreign),
            ("--stop-reading", self.stop_reading),
            ("--accept-deletes", self.accept_deletes),
            ("--fill-gaps", self.fill_gaps),
            ("--close-cases", self.close_cases),
            ("--reopen-cases", self.reopen_cases),
        )
        return [argument for option, values in named for value in values for argument in (option, value)]

    def _repair(self) -> list[str]:
        arguments = [] if self.step is None else ["--step", self.step]
        for plan in self.plans:
            arguments += ["--plan", plan]
        if self.approved_by:
            arguments.append(f"--approved-by={self.approved_by}")
        return arguments


def table_named_by(decision: str) -> str:
    """Return the table of `<table>=<what the decision names>`."""
    return decision.partition("=")[0].strip()


@dataclass(frozen=True, slots=True)
class TableError:
    """Why a table failed, for machines (`code`) and for the person on call (`sentence`, `advice`)."""

    code: str
    exit_code: ExitCode
    sentence: str
    advice: str


@dataclass(frozen=True, slots=True)
class TableResult:
    """What one job did to one table; the run report holds the same fields."""

    table: str
    status: TableStatus
    error: TableError | None = None
    ranges: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    """`<topic>` -> `<partition>` -> [from, until) of this run."""
    rows: int = 0
    """Rows that readers find added, changed or deleted by this run."""
    counts: Mapping[str, int] = field(default_factory=dict)
    errors_by_code: Mapping[str, int] = field(default_factory=dict)
    open_cases: int | None = None
    """Records of the table that could not be decoded and still wait; None where nobody counted."""
    seen_through: str | None = None
    """Newest source commit time seen. Called valid-through only where completeness is proved."""
    lag_seconds: float | None = None
    """Age of that commit; it grows while the source is quiet."""
    lag_offsets: int | None = None
    """Offsets of Kafka that bronze lacks; after a merge, those that silver has not applied."""
    valid_through: str | None = None
    """Every change that a reader of the source could see then is in the table, by the source's clock."""
    valid_position: str | None = None
    """The same as a place in the source's log, which is a little further."""
    valid_lag_seconds: float | None = None
    """Age of `valid_through`: while the source is quiet it does not grow with it."""
    withheld: str | None = None
    """Why the table says neither."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)
    """`bronze` / `silver` -> Delta version after this run."""
    batches: int = 0
    """Commits of this run."""
    drain: Mapping[str, float] = field(default_factory=dict)
    """Of an ingest: `done` and `left` of the offsets that Kafka held, `seconds`, `per_second`."""
    schema_ids: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """`key` / `value` -> ids of writer schemas that the records of this run have; GUIDs are left out."""
    registry: Mapping[str, str | int] = field(default_factory=dict)
    """`source`: `registry`, or `archive` when it was away; `calls`: requests for this table."""
    decode_seconds: float | None = None
    """In the Python workers, over all tasks: what one core would have needed."""
    decoded_per_second: float | None = None
    """Records per one of those seconds."""
    bad_rows: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """Code of `errors_by_code` -> coordinates and schema ids of the first few rows."""

    decisions: Mapping[str, Any] = field(default_factory=dict)
    """What a person, a recovery or the records decided with this run; its ledger has the same."""
    gaps: Mapping[str, Mapping[str, Sequence[Sequence[int]]]] = field(default_factory=dict)
    """`<topic>` -> `<partition>` -> [from, until) that the table knows to be missing."""
    time_to_loss: Mapping[str, Any] | None = None
    """How long until retention overtakes the ledger, as `bronze.time_to_loss` tells it."""
    unproven_source: str | None = None
    """A note that the pipeline accepts unproven connectors, with the connector's name where it is known."""
    freshness: Mapping[str, Any] = field(default_factory=dict)
    """How far the source, its connector and the table are, after an ingest (`bronze.freshness`)."""
    verification: Mapping[str, Any] = field(default_factory=dict)
    """Of a `verify`: its `verdict`, and what that stands on; keys and names, never a value."""

    health: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Of maintenance: `before` and `after` -> table -> `lake.health`, as OPTIMIZE and VACUUM found it."""
    plan: Mapping[str, Any] = field(default_factory=dict)
    """Of a repair: the plan that was made, carried out or verified (`repair.plan`)."""
    maintenance: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Table -> why OPTIMIZE wrote files again or did not, or the `kind` of VACUUM that it got."""
    findings: Sequence[Mapping[str, str]] = field(default_factory=list)
    """Of a preflight: `level`, `subject`, `sentence` and `advice` of each check (`preflight.findings`)."""

    @property
    def word(self) -> str:
        """What became of the table, in one word."""
        return str(self.verification.get("verdict", self.status))

    @property
    def conflict_nights(self) -> int:
        """Nights in a row on which OPTIMIZE could do nothing for one of its Delta tables."""
        return max((int(facts.get("conflict_nights", 0)) for facts in self.maintenance.values()), default=0)

    @property
    def exit_code(self) -> ExitCode:
        return self.error.exit_code if self.error is not None else ExitCode.DONE


@dataclass(frozen=True, slots=True)
class JobResult:
    """What the application tells its caller through the file named by `ENV_RESULT`."""

    job: Job
    pipeline: str
    attempt: str
    tables: tuple[TableResult, ...]
    error: TableError | None = None
    """Set when the job failed before or beside any single table."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Topics of an ingest with `discover:`, as `topics_left_alone` and `topics_taken_in_doubt`; attempts
    whose records maintenance found torn, as `torn_attempt_records`; what its cleanup deleted beside the
    tables, as `cleaned`."""
    v: int = RESULT_VERSION

    @property
    def exit_code(self) -> ExitCode:
        own = [self.error.exit_code] if self.error is not None else []
        return combined_exit_code([*own, *(table.exit_code for table in self.tables)])

    @property
    def failed(self) -> tuple[TableResult, ...]:
        return tuple(table for table in self.tables if table.error is not None)

    @property
    def advanced(self) -> tuple[TableResult, ...]:
        return tuple(table for table in self.tables if table.status is TableStatus.ADVANCED)

    @property
    def stopped_connectors(self) -> tuple[str, ...]:
        """Sentences of Kafka Connect about connectors that do not run, each once."""
        stopped = [table.freshness for table in self.tables if table.freshness.get("connector_runs") is False]
        return tuple(dict.fromkeys(str(freshness["connector"]) for freshness in stopped))

    def headline(self) -> str:
        """The first line that a person reads: `3 of 12 tables failed: orders OFFSETS_LOST, …`."""
        return "; ".join([self._counted(), *self.stopped_connectors])

    def _counted(self) -> str:
        if self.failed:
            names = ", ".join(f"{t.table} {t.error.code}" for t in self.failed if t.error is not None)
            return f"{len(self.failed)} of {len(self.tables)} tables failed: {names}"
        if self.error is not None:
            return f"{self.job} failed: {self.error.code}"
        if self.job is Job.VERIFY:
            verdicts = Counter(table.word for table in self.tables)
            told = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
            return f"{len(self.tables)} tables verified: {told or 'none asks for it'}"
        if self.job in MAINTENANCE_COUNTS:
            return self._maintained()
        if self.job in REPAIRS:
            return "; ".join(f"{t.table}: {t.plan.get('summary', t.word)}" for t in self.tables)
        done = "ready" if self.job is Job.PREFLIGHT else "advanced"
        count = len(self.tables if self.job is Job.PREFLIGHT else self.advanced)
        return f"{count} of {len(self.tables)} tables {done}"

    def _maintained(self) -> str:
        return maintenance_headline(
            [table.counts for table in self.tables],
            names=(*MAINTENANCE_COUNTS[self.job], "skipped"),
            statuses=Counter(str(table.status) for table in self.tables),
            nights=max((table.conflict_nights for table in self.tables), default=0),
            cleaned=self.notes.get("cleaned", ()),
        )

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> JobResult:
        """Raises `ValueError` for another version: a newer job answered an older caller."""
        document = json.loads(text)
        if document["v"] != RESULT_VERSION:
            raise ValueError(f"result has version {document['v']}, this code reads {RESULT_VERSION}")
        return cls(
            job=Job(document["job"]),
            pipeline=document["pipeline"],
            attempt=document["attempt"],
            tables=tuple(_table_result(table) for table in document["tables"]),
            error=_table_error(document["error"]),
            seconds=document["seconds"],
            notes=document.get("notes", {}),
        )


def _table_result(document: Mapping[str, Any]) -> TableResult:
    ranges = {
        topic: {partition: (start, until) for partition, (start, until) in partitions.items()}
        for topic, partitions in document["ranges"].items()
    }
    status, error = TableStatus(document["status"]), _table_error(document["error"])
    return TableResult(**{**document, "status": status, "error": error, "ranges": ranges})


def _table_error(document: Mapping[str, Any] | None) -> TableError | None:
    if document is None:
        return None
    return TableError(**{**document, "exit_code": ExitCode(document["exit_code"])})

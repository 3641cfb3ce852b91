"""What a running application knows: its request, its pipeline, its connections, its attempt."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cdc_lakehouse.application.command import refuse_options_without_effect, tables_decided_on
from cdc_lakehouse.application.session import LazySession
from cdc_lakehouse.config.loader import find_pipeline
from cdc_lakehouse.config.models import Pipeline, Table
from cdc_lakehouse.config.settings import Connection, Role, connection_from_environment
from cdc_lakehouse.config.storage_settings import StorageSettings, storage_settings
from cdc_lakehouse.contract import Job, JobRequest
from cdc_lakehouse.errors import UnknownNameError
from cdc_lakehouse.lake.attempts import RunningAttempt
from cdc_lakehouse.lake.interval import Interval
from cdc_lakehouse.lake.names import Lake, new_attempt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


TEMPORARY = "cdc_lakehouse-"
"""With the attempt behind it the name of the folder for its checkpoints on the driver's disk."""


@dataclass(frozen=True, slots=True)
class Application:
    request: JobRequest
    pipeline: Pipeline
    tables: tuple[Table, ...]
    lake: Lake
    attempt: str
    spark: LazySession
    notes: dict[str, list[str]] = field(default_factory=dict)
    """Remarks of the job beside its tables, for the report of the run."""
    interval: Interval | None = None
    """What the run is asked to make complete."""
    running: RunningAttempt | None = None
    """The record that this process keeps of itself in the lake, from the start of Spark on."""
    left_tables: frozenset[str] = frozenset()
    """Names of tables of the lake that the request names and the pipeline does not read (any more)."""

    @classmethod
    def from_request(cls, request: JobRequest, *, attempt: str) -> Application:
        """Raises a `ConfigError` for anything a person has to put right first."""
        refuse_options_without_effect(request)
        pipeline = find_pipeline(request.pipeline)
        tables = _chosen(pipeline, request)
        if pipeline.discover is None:
            _refuse_decisions_beside(pipeline, tables, request)
        interval = Interval.asked_for(request, timezone=pipeline.timezone, now=datetime.now(UTC))
        storage = storage_settings(connection_from_environment(Role.STORAGE))
        lake = Lake(root=storage.root, pipeline=pipeline.name, scratch=_scratch(storage, attempt))
        running = RunningAttempt(lake, attempt, job=request.job)
        name = f"{request.job} {pipeline.name}"
        return cls(
            request=request,
            pipeline=pipeline,
            tables=tables,
            lake=lake,
            attempt=attempt,
            spark=LazySession(name, storage=storage, before_start=running.begin),
            interval=interval,
            running=running,
        )

    def end(self) -> None:
        """Never raises. Of a process that is killed the scratch stays; nobody reads it."""
        self.spark.stop()
        if self.running is not None:
            self.running.end()
        if self.lake.scratch:
            shutil.rmtree(urlsplit(self.lake.scratch).path, ignore_errors=True)

    def with_tables_of(self, pipeline: Pipeline) -> Application:
        """With those of `pipeline`, which by now has all it discovers. Refuses names that nobody knows."""
        found = replace(self, pipeline=pipeline, tables=_chosen(pipeline, self.request))
        _refuse_unknown(pipeline, self.request)
        _refuse_decisions_beside(pipeline, found.tables, self.request)
        return found

    @property
    def drains(self) -> bool:
        """Return whether the run reads what is new: all do, but those about an interval only."""
        return self.interval is None or self.interval.also_drain

    def session(self) -> SparkSession:
        return self.spark.session()

    @staticmethod
    def connection(role: Role) -> Connection:
        return connection_from_environment(role)


def _scratch(storage: StorageSettings, attempt: str) -> str:
    """On a disk the lake itself serves: there a person finds the checkpoints of a run that failed."""
    if storage.s3 is None:
        return ""
    folder = Path(tempfile.gettempdir()) / f"{TEMPORARY}{attempt}"
    folder.mkdir(mode=0o700)
    return folder.as_uri()


def attempt_now() -> str:
    return new_attempt(datetime.now(UTC))


def _chosen(pipeline: Pipeline, request: JobRequest) -> tuple[Table, ...]:
    if pipeline.discover is None and request.job is not Job.RETIRE:
        # A retired table may be left out of the file: whether the lake has it is asked later.
        _refuse_unknown(pipeline, request)
    return tuple(
        table
        for table in pipeline.tables
        if (not request.tables or table.name in request.tables) and request.group in (None, table.group)
    )


def _refuse_unknown(pipeline: Pipeline, request: JobRequest) -> None:
    tables = [table.name for table in pipeline.tables]
    _require_known("--tables", request.tables, among=tables, kind="table", pipeline=pipeline.name)
    groups = () if request.group is None else (request.group,)
    _require_known("--group", groups, among=pipeline.groups, kind="group", pipeline=pipeline.name)


def _refuse_decisions_beside(pipeline: Pipeline, tables: tuple[Table, ...], request: JobRequest) -> None:
    """A decision about a table that this run does not touch would be green and do nothing.

    A group that discovers its tables is told those of the other groups too: they are decided on there.
    """
    meant = [table.name for table in (tables if request.group is None else pipeline.tables)]
    for parameter, asked in tables_decided_on(request).items():
        _require_known(parameter, asked, among=meant, kind="table", pipeline=pipeline.name)


def _require_known(
    parameter: str, asked: Iterable[str], *, among: Iterable[str], kind: str, pipeline: str
) -> None:
    error = UnknownNameError.of(parameter, asked, known=among, kind=kind, pipeline=pipeline)
    if error is not None:
        raise error

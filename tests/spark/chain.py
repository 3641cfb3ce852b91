"""Ingest and merge as the jobs run them, with records in memory where Kafka would be."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, ClassVar, cast
from urllib.parse import urlsplit

import pytest
from pyspark.sql import DataFrame, SparkSession

from cases.encoding import KafkaRecord  # type: ignore[import-not-found]
from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.session import LazySession
from cdc_lakehouse.avro.schema_refs import SchemaRef
from cdc_lakehouse.bronze import ingest as bronze_ingest
from cdc_lakehouse.bronze.decided import Decided
from cdc_lakehouse.bronze.plan import DrainPlan, plan_drain
from cdc_lakehouse.bronze.replay_job import replay_table
from cdc_lakehouse.bronze.went_back import turned_back
from cdc_lakehouse.config.models import Pipeline, Table
from cdc_lakehouse.contract import AirflowContext, Job, JobRequest, TableResult
from cdc_lakehouse.errors import RegistryUnavailableError
from cdc_lakehouse.kafka.facts import ClusterFacts, PartitionOffsets, TopicFacts
from cdc_lakehouse.lake.confirmations import Confirmation
from cdc_lakehouse.lake.interval import Interval
from cdc_lakehouse.lake.ledger import Ends, Kind, Ledger, topic_of
from cdc_lakehouse.lake.names import Lake, new_attempt
from cdc_lakehouse.lake.spans import Spans, each_span
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.registry.client import SchemaRegistry
from cdc_lakehouse.registry.versions import Version
from cdc_lakehouse.silver.look import MergeTask, look_at
from cdc_lakehouse.silver.table_merge import merge_table

PIPELINE = "cases"
RUN = AirflowContext("cdc_cases", "manual__1", "main.bronze_ingest", 1, triggered_by="ann", note="ticket 7")
BY = {"user": "ann", "run": "cdc_cases manual__1", "note": "ticket 7"}
"""How the decisions of that run are signed."""
CLUSTER = "cluster-1"
TOPIC_ID = "topic-1"
KAFKA_ROWS = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset LONG, timestamp TIMESTAMP,"
    " timestampType INT, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
KAFKA_TIME = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@dataclass(slots=True)
class FakeRegistry:
    """What the product asks of `SchemaRegistry`. `hidden` ids are known by id only, not as versions."""

    name: ClassVar[str] = "memory"
    calls: ClassVar[int] = 0

    keys: dict[str, dict[int, str]] = field(default_factory=dict)
    values: dict[str, dict[int, str]] = field(default_factory=dict)
    hidden: dict[int, str] = field(default_factory=dict)
    asked: list[SchemaRef] = field(default_factory=list)
    away: bool = False

    def register(self, topic: str, *, keys: Mapping[int, str], values: Mapping[int, str]) -> None:
        self.keys.setdefault(topic, {}).update(keys)
        self.values.setdefault(topic, {}).update(values)

    def for_table(self) -> FakeRegistry:
        return self

    def listed(self, topic: str) -> None:
        """Not served, as by the registry of the local stack."""

    def latest(self, subject: str) -> Version | None:
        return next(reversed(self.versions(subject)), None)

    def versions(self, subject: str) -> list[Version]:
        self._answer()
        topic, _, side = subject.rpartition("-")
        registered = {"key": self.keys, "value": self.values}.get(side, {})
        known = sorted(registered.get(topic, {}).items())
        return [Version(subject, place, number, text) for place, (number, text) in enumerate(known, 1)]

    def schema(self, ref: SchemaRef) -> str | None:
        self._answer()
        self.asked.append(ref)
        known = dict(self.hidden)
        for texts in (*self.keys.values(), *self.values.values()):
            known.update(texts)
        return known.get(ref) if isinstance(ref, int) else None

    def _answer(self) -> None:
        if self.away:
            raise RegistryUnavailableError(url="memory:", reason="away")


@dataclass(slots=True)
class Chain:
    """One lake; every call of `ingest` or `merge` is an attempt of its own."""

    engine: LazySession
    root: str
    registry: FakeRegistry = field(default_factory=FakeRegistry)
    options: Mapping[str, object] = field(default_factory=dict)
    """Keys of the pipeline file beside its tables."""

    @property
    def lake(self) -> Lake:
        return Lake(root=self.root, pipeline=PIPELINE)

    @property
    def session(self) -> SparkSession:
        return self.engine.session()

    def application(
        self,
        *tables: Table,
        job: Job = Job.BRONZE_INGEST,
        dry_run: bool = False,
        vacuum_retention: str = "7d",
        accept_deletes: str | None = None,
        interval: Interval | None = None,
    ) -> Application:
        document = {
            "version": 1,
            "name": PIPELINE,
            "owner": "tests",
            "schedule": "0 * * * *",
            "start_date": date(2026, 1, 1),
            "maintenance": {"vacuum_retention": vacuum_retention},
            "tables": [table.model_dump() for table in tables],
            **self.options,
        }
        return Application(
            request=JobRequest(
                job=job,
                pipeline=PIPELINE,
                tables=(),
                airflow=RUN,
                dry_run=dry_run,
                accept_deletes=() if accept_deletes is None else (accept_deletes,),
            ),
            pipeline=Pipeline.model_validate(document),
            tables=tables,
            lake=self.lake,
            attempt=new_attempt(datetime.now(UTC)),
            spark=self.engine,
            interval=interval,
        )

    def plan(
        self, table: Table, records: Sequence[KafkaRecord], *, source_epoch: int | None = None
    ) -> DrainPlan:
        """From where bronze stands to behind the last of `records`, as the job plans it."""
        state = read_state(self.lake.bronze(table.name), table=table.name)
        known = state.ledger if state is not None else None
        ledger = known or Ledger(kind=Kind.BRONZE, pipeline=PIPELINE, table=table.name, cluster_id=CLUSTER)
        decided = Decided(source_epoch=source_epoch)
        turned: Ends = {}
        if state is not None and decided.epoch_to_open(ledger) is not None:
            turned = turned_back(self.engine.session, self.lake, ledger, version=state.version)
        facts = _facts(table, ledger, records)
        return plan_drain(ledger, table.topics, facts=facts, decided=decided, turned=turned)

    def ingest(
        self,
        table: Table,
        records: Sequence[KafkaRecord],
        *,
        plan: DrainPlan | None = None,
        kafka: Sequence[KafkaRecord] = (),
        confirmations: Sequence[Confirmation] = (),
    ) -> TableResult:
        """`TableIngest.run`, with `records` as its drain's one micro-batch; gaps are read from `kafka`."""
        plan = plan or self.plan(table, records)

        def drain(session: SparkSession, plan: DrainPlan, *, write: Any, **_kafka: Any) -> None:
            write(kafka_rows(session, records), plan.added(plan.start, plan.until))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bronze_ingest, "drain", drain)
            run = bronze_ingest.TableIngest(
                self.application(table),
                table,
                plan=plan,
                registry=cast(SchemaRegistry, self.registry),
                read_again=lambda session, spans: rows_again(session, kafka, spans),
                confirmations=confirmations,
            )
            return run.run(kafka={})

    def merge(
        self, table: Table, *, accept_deletes: str | None = None, interval: Interval | None = None
    ) -> TableResult:
        """What the job does with one table; what fails is raised."""
        application = self.application(
            table, job=Job.SILVER_MERGE, accept_deletes=accept_deletes, interval=interval
        )
        found = look_at(application, table)
        return merge_table(application, found) if isinstance(found, MergeTask) else found

    def replay(self, table: Table) -> TableResult:
        """What the job does with one table."""
        registry = cast(SchemaRegistry, self.registry)
        return replay_table(self.application(table, job=Job.QUARANTINE_REPLAY), table, registry=registry)

    def copied_to(self, folder: Path) -> Chain:
        """The same lake in another place: Delta tables may be moved as a whole."""
        shutil.copytree(Path(urlsplit(self.root).path), folder, dirs_exist_ok=True)
        return replace(self, root=folder.as_uri(), registry=deepcopy(self.registry))

    def forget_silver(self, table: Table) -> None:
        for uri in (self.lake.silver(table.name), self.lake.history(table.name)):
            self.forget(uri)

    def forget(self, uri: str) -> None:
        """As somebody deletes a folder by hand."""
        shutil.rmtree(Path(urlsplit(uri).path), ignore_errors=True)

    def bronze(self, table: Table) -> list[dict[str, Any]]:
        return self.rows(self.lake.bronze(table.name), "topic", "partition", "offset")

    def silver(self, table: Table) -> list[dict[str, Any]]:
        return self.rows(self.lake.silver(table.name))

    def history(self, table: Table) -> list[dict[str, Any]]:
        return self.rows(self.lake.history(table.name)) if table.history else []

    def rows(self, uri: str, *order: str) -> list[dict[str, Any]]:
        rows = self.session.read.format("delta").load(uri).collect()
        told = [row.asDict(recursive=True) for row in rows]
        return sorted(told, key=lambda row: [row[name] for name in order])

    def sql(self, statement: str, uri: str) -> list[dict[str, Any]]:
        """What somebody does by hand; `{t}` is the table."""
        frame = self.session.sql(statement.format(t=f"delta.`{uri}`"))
        return [row.asDict(recursive=True) for row in frame.collect()]


def kafka_rows(session: SparkSession, records: Sequence[KafkaRecord]) -> DataFrame:
    """What Spark's Kafka source gives out."""
    return session.createDataFrame([_row(each) for each in records], KAFKA_ROWS)


def _row(each: KafkaRecord) -> tuple[Any, ...]:
    headers = list(each.headers) or None
    return (each.key, each.value, each.topic, each.partition, each.offset, KAFKA_TIME, 0, headers)


def rows_again(session: SparkSession, records: Sequence[KafkaRecord], spans: Spans) -> DataFrame:
    """As `read_again` does it: no task has records of two spans."""
    parts = [
        [each for each in records if (each.topic, each.partition) == place and each.offset in range(*span)]
        for place, span in (((topic_of(source), p), span) for source, p, span in each_span(spans))
    ]
    rows = [[_row(each) for each in part] for part in parts]
    tasks = session.sparkContext.parallelize(range(len(rows)), len(rows))
    return session.createDataFrame(tasks.flatMap(lambda number: rows[number]), KAFKA_ROWS)


def table_of(name: str, *topics: str, **options: Any) -> Table:
    """One that takes runs of nothing but undecodable records: most laws are about a single one."""
    document = {"name": name, "topics": topics or (f"cases.{name}",), "quarantine_limit": {"share": 1}}
    return Table.model_validate(document | options)


def _facts(table: Table, ledger: Ledger, records: Sequence[KafkaRecord]) -> ClusterFacts:
    """A partition that the table has read stands where it stood, unless `records` go on there."""
    topics = {}
    for name in table.topics:
        topic = TopicFacts(name=name, topic_id=TOPIC_ID, partitions={})
        ends = {p: progress.end for p, progress in ledger.sources.get(topic.source, {}).items()}
        for record in records:
            if record.topic == name:
                ends[record.partition] = max(ends.get(record.partition, 0), record.offset + 1)
        partitions = {partition: PartitionOffsets(0, end) for partition, end in ends.items()}
        topics[name] = replace(topic, partitions=partitions)
    return ClusterFacts(cluster_id=CLUSTER, topics=topics)

"""Drain one table into bronze: batch by batch, each with its ledger in the same commit."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.bronze.added import Added
from cdc_lakehouse.bronze.amend import amend
from cdc_lakehouse.bronze.decode_udf import write_files
from cdc_lakehouse.bronze.drain import drain
from cdc_lakehouse.bronze.layout import is_small, lay_out
from cdc_lakehouse.bronze.mass import refuse_in_mass
from cdc_lakehouse.bronze.plan import DrainPlan, going_on, refuse_other_topics, refuse_unless_next
from cdc_lakehouse.bronze.progress import Progress
from cdc_lakehouse.bronze.read_again import unfit_timestamp
from cdc_lakehouse.bronze.sorted_udf import Destination
from cdc_lakehouse.bronze.table_decoder import TableDecoder
from cdc_lakehouse.bronze.write import BRONZE_PROPERTIES, CommitResult, append
from cdc_lakehouse.bronze.written_file import WrittenFile
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import TableResult, TableStatus
from cdc_lakehouse.debezium.plans import DecodePlans
from cdc_lakehouse.lake.ledger import Ranges, gaps_by_topic, topic_of
from cdc_lakehouse.lake.tables import create_if_missing, schema_of
from cdc_lakehouse.registry.client import SchemaRegistry

logger = logging.getLogger(__name__)

TopicIds = Callable[[Collection[str]], Mapping[str, str]]
ReadAgain = Callable[[SparkSession, Ranges], DataFrame]


class TableIngest:
    """One table of one attempt: its plan, the schemas met so far, the commits made so far."""

    def __init__(
        self,
        application: Application,
        table: Table,
        *,
        plan: DrainPlan,
        registry: SchemaRegistry,
        topic_ids: TopicIds | None = None,
        read_again: ReadAgain | None = None,
    ) -> None:
        """`topic_ids` asks Kafka; records that are not from Kafka have no topic that could be made again.

        `read_again` reads what Spark's source cannot.
        """
        self._application = application
        self.table = table
        self._plan = plan
        self._registry = registry
        self._uri = application.lake.bronze(table.name)
        self._ledger = plan.ledger
        self._topic_ids = topic_ids
        self._read_again = read_again
        self._commits: list[CommitResult] = []
        self._amended: int | None = None
        self._known = plan.version
        """The newest version of which all is known that a commit on it has to know."""
        self._decoder: TableDecoder | None = None
        self.progress = Progress(plan.backlog)
        self._seconds: dict[str, float] = {}
        self._tables = 1
        """In the query that read it."""

    def run(self, *, kafka: Mapping[str, str]) -> TableResult:
        """Drain the plan, or what a query together with other tables left of it.

        A second ingest of the same plan finds the ledger advanced and is refused as superseded.
        """
        session = self._application.spark.isolated(small=is_small(self._plan.backlog))
        self.prepare(session)
        if self.is_behind:
            plan = self.rest
            with self._timed("drain"):
                per_batch, cores = self.table.max_offsets_per_trigger, session.sparkContext.defaultParallelism
                drain(
                    session,
                    plan,
                    write=self._write,
                    checkpoint=self._application.lake.checkpoint(self.table.name, self._application.attempt),
                    kafka=kafka,
                    max_offsets_per_trigger=per_batch,
                    layout=lay_out(plan.backlogs(), cores=cores, per_batch=per_batch),
                    progress=self.progress,
                )
        return self.result()

    def prepare(self, session: SparkSession) -> None:
        """Schemas, the table, what was decided about it: all that comes before rows. Done once."""
        if self._decoder is not None:
            return
        with self._timed("prepare"):
            existing = schema_of(session, self._uri)
            decoder = TableDecoder(self._application, self.table, registry=self._registry, existing=existing)
            if existing is None and create_if_missing(
                session, self._uri, schema=decoder.schema, properties=BRONZE_PROPERTIES
            ):
                self._known = 0
            if self._plan.amends:
                attempt = self._application.attempt
                self._ledger, self._amended = amend(
                    session, self._plan, uri=self._uri, attempt=attempt, schema=decoder.schema
                )
                self._known = self._amended
            self._decoder = decoder

    @property
    def rest(self) -> DrainPlan:
        """What is left to read of the plan."""
        return going_on(self._plan, self._ledger)

    @property
    def is_behind(self) -> bool:
        return any(backlog > 0 for backlog in self.rest.backlogs())

    @property
    def destination(self) -> Destination:
        """Of its records in a query together with other tables."""
        return Destination(self._prepared().plans(self._plan.topic_ids), self._uri)

    def read_together(self, *, tables: int, seconds: float) -> None:
        """A batch of its records was read beside those of others: told in the report."""
        self._seconds["drain"] = self._seconds.get("drain", 0.0) + seconds
        self._tables = tables

    def so_far(self) -> TableResult | None:
        """What is committed, for the report of a drain that failed; None when nothing is."""
        return self.result() if self._commits else None

    def _write(self, batch: DataFrame, added: Ranges) -> None:
        """One batch, one commit."""
        if not added:
            return
        refuse_unless_next(self._ledger, added, attempt=self._application.attempt)
        files = self._written(batch, added)
        names = [topic.name for topic in self._plan.topics]
        # Asked for after the records were read.
        topic_ids = None if self._topic_ids is None else self._topic_ids(names)
        self.commit(batch.sparkSession, files, added, topic_ids=topic_ids)

    def commit(
        self,
        session: SparkSession,
        files: list[WrittenFile],
        added: Ranges,
        *,
        topic_ids: Mapping[str, str] | None,
    ) -> None:
        """Make `files` the rows of `added`. A second call with the same is refused as superseded."""
        attempt = self._application.attempt
        refuse_unless_next(self._ledger, added, attempt=attempt)
        if topic_ids is not None:
            # A topic that was made again while it was read gives out records that are not the plan's.
            refuse_other_topics(self._plan, topic_ids)
        fresh = Added.of_files(files)
        run = Added.together([*(commit.added for commit in self._commits), fresh])
        self._warn_of_bad_rows(fresh)
        refuse_in_mass(run, self.table.quarantine_limit, table=self.table.name)
        seen = fresh.seen_through
        with self._timed("commit"):
            commit = append(
                session,
                files,
                uri=self._uri,
                before=self._ledger,
                after=self._ledger.advanced(
                    added,
                    attempt=attempt,
                    seen_through=None if seen is None else seen.isoformat(),
                    planned=self._plan.planned,
                    marks=self._plan.marks,
                ),
                schema=self._prepared().schema,
                known=self._known,
            )
        self._ledger, self._known = commit.ledger, commit.version
        self._commits.append(commit)
        logger.info("batch committed", extra={"seq": commit.ledger.seq, "rows": commit.added.rows})

    def _written(self, batch: DataFrame, added: Ranges) -> list[WrittenFile]:
        """Files that hold the batch; read again where Spark's source cannot give its records out."""
        try:
            return self._decoded(batch, added)
        except Exception as exc:
            first = unfit_timestamp(str(exc))
            if self._read_again is None or first is None:
                raise
        logger.warning("a timestamp fits nowhere: the batch is read again", extra={"first": first})
        return self._decoded(self._read_again(batch.sparkSession, added), added)

    def _decoded(self, batch: DataFrame, added: Ranges) -> list[WrittenFile]:
        attempt = self._application.attempt

        def write(plans: DecodePlans, *, wide: bool) -> list[WrittenFile]:
            return write_files(batch, plans, folder=self._uri, attempt=attempt, wide=wide)

        return self._prepared().decoded(write, batch=added, topic_ids=self._plan.topic_ids)

    def _prepared(self) -> TableDecoder:
        if self._decoder is None:
            raise RuntimeError(f"{self.table.name} is not prepared")
        return self._decoder

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self._seconds[what] = self._seconds.get(what, 0.0) + time.monotonic() - started

    @staticmethod
    def _warn_of_bad_rows(added: Added) -> None:
        for code, rows in added.bad_rows_by_code().items():
            count = added.errors_by_code[code]
            logger.warning("undecodable records", extra={"code": code, "records": count, "first": rows})

    def result(self) -> TableResult:
        """As the report tells it."""
        added = Added.together(commit.added for commit in self._commits)
        version = self._commits[-1].version if self._commits else self._amended
        seen, decode_seconds = added.seen_through, added.decode_seconds
        return TableResult(
            table=self.table.name,
            status=TableStatus.IDLE if version is None else TableStatus.ADVANCED,
            ranges=self._ranges(),
            counts={
                "appended": added.rows,
                "undecodable": sum(added.errors_by_code.values()),
                "out_of_range": added.out_of_range,
            },
            errors_by_code=added.errors_by_code,
            seen_through=None if seen is None else seen.isoformat(),
            lag_seconds=None if seen is None else round((datetime.now(UTC) - seen).total_seconds(), 1),
            seconds={name: round(value, 3) for name, value in self._seconds.items()},
            versions={} if version is None else {"bronze": version},
            batches=len(self._commits),
            drain={**self.progress.pace().report(), "tables": self._tables},
            schema_ids=added.schema_ids(),
            registry=self._prepared().registry,
            decode_seconds=round(decode_seconds, 3),
            decoded_per_second=round(added.rows / decode_seconds) if decode_seconds else None,
            bad_rows=added.bad_rows_by_code(),
            decisions=self._plan.ledger.decisions if self._amended is not None else {},
            gaps=gaps_by_topic(self._ledger),
        )

    def _ranges(self) -> dict[str, dict[str, tuple[int, int]]]:
        found: dict[str, dict[str, tuple[int, int]]] = {}
        for commit in self._commits:
            for source, partitions in commit.ledger.added.items():
                known = found.setdefault(topic_of(source), {})
                for partition, (start, end) in partitions.items():
                    known[str(partition)] = (known.get(str(partition), (start, end))[0], end)
        return found

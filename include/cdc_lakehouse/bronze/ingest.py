"""Drain one table into bronze: batch by batch, each with its ledger in the same commit."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.avro.schema_refs import in_order
from cdc_lakehouse.avro.unknown import unknown_ids_by_place
from cdc_lakehouse.bronze.added import Added
from cdc_lakehouse.bronze.amend import amend
from cdc_lakehouse.bronze.batch_size import outgrew
from cdc_lakehouse.bronze.decode_udf import write_files
from cdc_lakehouse.bronze.drain import drain
from cdc_lakehouse.bronze.layout import is_small
from cdc_lakehouse.bronze.mass import refuse_in_mass
from cdc_lakehouse.bronze.plan import DrainPlan, refuse_other_topics, refuse_unless_next
from cdc_lakehouse.bronze.progress import Progress
from cdc_lakehouse.bronze.read_again import unfit_timestamp
from cdc_lakehouse.bronze.schemas import KnownSchemas, resolve_subjects, resolve_unknown
from cdc_lakehouse.bronze.worker_failures import known_failure
from cdc_lakehouse.bronze.write import BRONZE_PROPERTIES, CommitResult, append
from cdc_lakehouse.bronze.written_file import WrittenFile
from cdc_lakehouse.config.models import OutOfRange, Raw, Table
from cdc_lakehouse.contract import TableResult, TableStatus
from cdc_lakehouse.debezium.plans import DecodePlans
from cdc_lakehouse.lake.bronze_schema import columns_in, table_schema
from cdc_lakehouse.lake.ledger import Ranges, gaps_by_topic, topic_of
from cdc_lakehouse.lake.schema_archive import SchemaArchive
from cdc_lakehouse.lake.tables import create_if_missing, schema_of
from cdc_lakehouse.registry.client import SchemaRegistry
from cdc_lakehouse.registry.writer_schemas import WriterSchemas

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
        self._table = table
        self._plan = plan
        self._registry = registry.for_table()
        archive = SchemaArchive(application.lake.schemas(registry.name))
        self._writers = WriterSchemas(self._registry, archive, table=table.name)
        self._uri = application.lake.bronze(table.name)
        self._ledger = plan.ledger
        self._topic_ids = topic_ids
        self._read_again = read_again
        self._commits: list[CommitResult] = []
        self._amended: int | None = None
        self._wide = False
        self._progress = Progress(plan.backlog)

    def run(self, *, kafka: Mapping[str, str]) -> TableResult:
        """Drain the plan. A second call finds the ledger advanced and is refused as superseded."""
        session = self._application.spark.isolated(small=is_small(self._plan.backlog))
        started = time.monotonic()
        existing = schema_of(session, self._uri)
        self._schemas = resolve_subjects(
            self._writers,
            self._table.topics,
            table=self._table.name,
            existing=None if existing is None else columns_in(existing),
            dropped=frozenset(self._table.drop_columns),
        )
        if existing is None:
            schema = table_schema(self._schemas.columns)
            create_if_missing(session, self._uri, schema=schema, properties=BRONZE_PROPERTIES)
        prepared = time.monotonic()
        if self._plan.amends:
            schema, attempt = table_schema(self._schemas.columns), self._application.attempt
            self._ledger, self._amended = amend(
                session, self._plan, uri=self._uri, attempt=attempt, schema=schema
            )
        if self._plan.backlog:
            drain(
                session,
                self._plan,
                write=self._write,
                checkpoint=self._application.lake.checkpoint(self._table.name, self._application.attempt),
                kafka=kafka,
                max_offsets_per_trigger=self._table.max_offsets_per_trigger,
                progress=self._progress,
            )
        seconds = {"prepare": prepared - started, "drain": time.monotonic() - prepared}
        return self._result({name: round(value, 3) for name, value in seconds.items()})

    def so_far(self) -> TableResult | None:
        """What is committed, for the report of a drain that failed; None when nothing is."""
        return self._result({}) if self._commits else None

    def _write(self, batch: DataFrame, added: Ranges) -> None:
        """One batch, one commit."""
        if not added:
            return
        attempt = self._application.attempt
        refuse_unless_next(self._ledger, added, attempt=attempt)
        files = self._written(batch, added)
        self._refuse_other_topics()
        fresh = Added.of_files(files)
        run = Added.together([*(commit.added for commit in self._commits), fresh])
        self._warn_of_bad_rows(fresh)
        refuse_in_mass(run, self._table.quarantine_limit, table=self._table.name)
        seen = fresh.seen_through
        commit = append(
            batch.sparkSession,
            files,
            uri=self._uri,
            before=self._ledger,
            after=self._ledger.advanced(
                added,
                attempt=attempt,
                seen_through=None if seen is None else seen.isoformat(),
                planned=self._plan.planned,
            ),
            schema=table_schema(self._schemas.columns),
            known=self._commits[-1].version if self._commits else self._amended,
        )
        self._ledger = commit.ledger
        self._commits.append(commit)
        logger.info("batch committed", extra={"seq": commit.ledger.seq, "rows": commit.added.rows})

    def _written(self, batch: DataFrame, added: Ranges) -> list[WrittenFile]:
        """Files that hold the batch; met with an unknown schema or with wide records, once more."""
        while True:
            try:
                return write_files(
                    batch,
                    self._plans(self._schemas),
                    folder=self._uri,
                    attempt=self._application.attempt,
                    wide=self._wide,
                )
            except Exception as exc:
                if (known := known_failure(str(exc), root=self._uri, table=self._table.name)) is not None:
                    raise known from exc
                if self._read_again is not None and (first := unfit_timestamp(str(exc))) is not None:
                    logger.warning(
                        "a timestamp fits nowhere: the batch is read again", extra={"first": first}
                    )
                    batch = self._read_again(batch.sparkSession, added)
                    continue
                if not self._wide and outgrew(str(exc)):
                    logger.info("records are wide: batches are limited by bytes from here on")
                    self._wide = True
                    continue
                unknown = unknown_ids_by_place(str(exc))
                if not unknown.keys | unknown.values:
                    raise
                logger.info(
                    "new schemas met",
                    extra={"ids": [str(ref) for ref in in_order(unknown.keys | unknown.values)]},
                )
                self._schemas = resolve_unknown(self._writers, self._schemas, unknown, batch=added)

    def _refuse_other_topics(self) -> None:
        """A topic that was made again while it was read gives out records that are not the plan's."""
        if self._topic_ids is not None:
            refuse_other_topics(self._plan, self._topic_ids([topic.name for topic in self._plan.topics]))

    @staticmethod
    def _warn_of_bad_rows(added: Added) -> None:
        for code, rows in added.bad_rows_by_code().items():
            count = added.errors_by_code[code]
            logger.warning("undecodable records", extra={"code": code, "records": count, "first": rows})

    def _plans(self, schemas: KnownSchemas) -> DecodePlans:
        return DecodePlans(
            table=self._table.name,
            columns=schemas.columns,
            schemas=schemas.texts,
            topic_ids=self._plan.topic_ids,
            keep_raw=self._table.raw is Raw.ALWAYS,
            dropped=schemas.dropped,
            null_if_out_of_range=self._table.out_of_range is OutOfRange.AS_NULL,
        )

    def _result(self, seconds: Mapping[str, float]) -> TableResult:
        added = Added.together(commit.added for commit in self._commits)
        version = self._commits[-1].version if self._commits else self._amended
        seen, decode_seconds = added.seen_through, added.decode_seconds
        return TableResult(
            table=self._table.name,
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
            seconds=seconds,
            versions={} if version is None else {"bronze": version},
            batches=len(self._commits),
            drain=self._progress.pace().report(),
            schema_ids=added.schema_ids(),
            registry={"source": self._writers.source.value, "calls": self._registry.calls},
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

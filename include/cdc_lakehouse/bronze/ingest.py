"""Drain one table into bronze: batch by batch, each with its ledger in the same commit."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.bronze.added import Added
from cdc_lakehouse.bronze.amend import amend
from cdc_lakehouse.bronze.decode_udf import write_files
from cdc_lakehouse.bronze.drain import drain
from cdc_lakehouse.bronze.epochs import EPOCHS_OPENED, all_opened, decide_epochs
from cdc_lakehouse.bronze.layout import is_small
from cdc_lakehouse.bronze.mass import refuse_in_mass
from cdc_lakehouse.bronze.plan import DrainPlan, refuse_other_topics, refuse_unless_next
from cdc_lakehouse.bronze.progress import Progress
from cdc_lakehouse.bronze.read_again import unfit_timestamp
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
        self._table = table
        self._plan = plan
        self._registry = registry
        self._uri = application.lake.bronze(table.name)
        self._ledger = plan.ledger
        self._topic_ids = topic_ids
        self._read_again = read_again
        self._commits: list[CommitResult] = []
        self._amended: int | None = None
        self._progress = Progress(plan.backlog)

    def run(self, *, kafka: Mapping[str, str]) -> TableResult:
        """Drain the plan. A second call finds the ledger advanced and is refused as superseded."""
        session = self._application.spark.isolated(small=is_small(self._plan.backlog))
        started = time.monotonic()
        existing = schema_of(session, self._uri)
        self._decoder = TableDecoder(
            self._application, self._table, registry=self._registry, existing=existing
        )
        if existing is None:
            create_if_missing(session, self._uri, schema=self._decoder.schema, properties=BRONZE_PROPERTIES)
        prepared = time.monotonic()
        if self._plan.amends:
            schema, attempt = self._decoder.schema, self._application.attempt
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
        epochs = decide_epochs(
            self._ledger, files, sources=self._plan.sources, planned=self._plan.planned, added=added
        )
        after = epochs.ledger.advanced(
            added,
            attempt=attempt,
            seen_through=None if seen is None else seen.isoformat(),
            planned=self._plan.planned,
            marks=self._plan.marks,
        )
        commit = append(
            batch.sparkSession,
            files,
            uri=self._uri,
            before=self._ledger,
            after=replace(after, decisions=epochs.told()),
            schema=self._decoder.schema,
            known=self._commits[-1].version if self._commits else self._amended,
        )
        self._ledger = commit.ledger
        self._commits.append(commit)
        logger.info("batch committed", extra={"seq": commit.ledger.seq, "rows": commit.added.rows})
        for opened in commit.ledger.decisions.get(EPOCHS_OPENED, ()):
            logger.warning("source epoch opened", extra=opened)

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

        return self._decoder.decoded(write, batch=added, topic_ids=self._plan.topic_ids)

    def _refuse_other_topics(self) -> None:
        """A topic that was made again while it was read gives out records that are not the plan's."""
        if self._topic_ids is not None:
            refuse_other_topics(self._plan, self._topic_ids([topic.name for topic in self._plan.topics]))

    @staticmethod
    def _warn_of_bad_rows(added: Added) -> None:
        for code, rows in added.bad_rows_by_code().items():
            count = added.errors_by_code[code]
            logger.warning("undecodable records", extra={"code": code, "records": count, "first": rows})

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
            registry=self._decoder.registry,
            decode_seconds=round(decode_seconds, 3),
            decoded_per_second=round(added.rows / decode_seconds) if decode_seconds else None,
            bad_rows=added.bad_rows_by_code(),
            decisions={
                **(self._plan.ledger.decisions if self._amended is not None else {}),
                **all_opened(commit.ledger for commit in self._commits),
            },
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

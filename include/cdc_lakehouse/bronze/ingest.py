"""Drain one table into bronze: batch by batch, each with its ledger in the same commit."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.signing import signed
from cdc_lakehouse.bronze.added import Added
from cdc_lakehouse.bronze.amend import amend
from cdc_lakehouse.bronze.decode_udf import write_files
from cdc_lakehouse.bronze.drain import drain
from cdc_lakehouse.bronze.epochs import EPOCHS_OPENED, Decision, decide_epochs
from cdc_lakehouse.bronze.fill_plan import batches, filled
from cdc_lakehouse.bronze.layout import is_small, lay_out
from cdc_lakehouse.bronze.mass import refuse_in_mass, share_after
from cdc_lakehouse.bronze.plan import DrainPlan, going_on, refuse_other_topics, refuse_unless_next
from cdc_lakehouse.bronze.progress import Progress
from cdc_lakehouse.bronze.read_again import unfit_timestamp
from cdc_lakehouse.bronze.report import told
from cdc_lakehouse.bronze.sorted_udf import Destination
from cdc_lakehouse.bronze.table_decoder import TableDecoder
from cdc_lakehouse.bronze.write import BRONZE_PROPERTIES, CommitResult, append
from cdc_lakehouse.bronze.written_file import WrittenFile, with_runs_apart
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import TableResult
from cdc_lakehouse.debezium.plans import DecodePlans
from cdc_lakehouse.lake.bronze_schema import schema_without_row
from cdc_lakehouse.lake.claims import claim_of_bronze
from cdc_lakehouse.lake.confirmations import Confirmation
from cdc_lakehouse.lake.ledger import Ledger, Ranges
from cdc_lakehouse.lake.spans import Spans, hull_of, in_words, spans_of, together
from cdc_lakehouse.lake.tables import create_if_missing, schema_of
from cdc_lakehouse.registry.client import SchemaRegistry

logger = logging.getLogger(__name__)

TopicIds = Callable[[Collection[str]], Mapping[str, str]]
ReadAgain = Callable[[SparkSession, Spans], DataFrame]


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
        confirmations: Sequence[Confirmation] = (),
    ) -> None:
        """`topic_ids` asks Kafka; records that are not from Kafka have no topic that could be made again.

        `read_again` reads what Spark's source cannot: gaps, and records with odd timestamps. `confirmations`
        are what its commits may claim.
        """
        self._application = application
        self.table = table
        if plan.amends:
            decisions = signed(plan.ledger.decisions, application.request)
            plan = replace(plan, ledger=replace(plan.ledger, decisions=decisions))
        self._plan = plan
        self._registry = registry
        self._uri = application.lake.bronze(table.name)
        self._ledger = plan.ledger
        self._undecodable = plan.ledger.undecodable
        self._topic_ids = topic_ids
        self._read_again = read_again
        self._confirmations = confirmations
        self._commits: list[CommitResult] = []
        self._amended: int | None = None
        self._filled: Spans = {}
        self._known = plan.version
        """The newest version of which all is known that a commit on it has to know."""
        self._is_prepared = False
        self._decoder: TableDecoder | None = None
        """None as long as there is nothing to read."""
        self.progress = Progress(plan.backlog)
        self._seconds: dict[str, float] = {}
        self._tables = 1
        """In the query that read it."""

    def run(self, *, kafka: Mapping[str, str]) -> TableResult:
        """Fill and drain the plan, or what a query together with other tables left of it.

        A second ingest of the same plan finds the ledger advanced and is refused as superseded.
        """
        offsets = self._plan.backlog + self._plan.fill.offsets
        session = self._application.spark.isolated(small=is_small(offsets))
        self.prepare(session)
        for spans in batches(self._plan.fill.held, limit=self.table.max_offsets_per_trigger):
            with self._timed("fill"):
                self._fill(session, spans)
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
        """Commit decisions, read schemas, make the table: all that comes before rows. Done once."""
        if self._is_prepared:
            return
        with self._timed("prepare"):
            existing = schema_of(session, self._uri)
            if self._plan.amends:
                # Without the registry: where a table begins does not wait for a schema of its records.
                existing = existing or self._create_table(session, schema_without_row())
                attempt = self._application.attempt
                self._ledger, self._amended = amend(
                    session, self._plan, uri=self._uri, attempt=attempt, schema=existing
                )
                self._known = self._amended
            if self.is_behind or self._plan.fill.held:
                decoder = TableDecoder(
                    self._application, self.table, registry=self._registry, existing=existing
                )
                if existing is None:
                    self._create_table(session, decoder.schema)
                self._decoder = decoder
        self._is_prepared = True

    def _create_table(self, session: SparkSession, schema: StructType) -> StructType:
        """Make the table unless it exists, and return `schema`; a second call changes nothing."""
        if create_if_missing(session, self._uri, schema=schema, properties=BRONZE_PROPERTIES):
            self._known = 0
        return schema

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
        self.commit(batch.sparkSession, files, added, topic_ids=self._asked_topic_ids())

    def _asked_topic_ids(self) -> Mapping[str, str] | None:
        """To be asked for after the records were read."""
        return None if self._topic_ids is None else self._topic_ids([each.name for each in self._plan.topics])

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

        def after(seen: str | None) -> Ledger:
            planned, marks = self._plan.planned, self._plan.marks
            epochs = self._decide_epochs(files, added)
            advanced = epochs.ledger.advanced(
                added, attempt=attempt, seen_through=seen, planned=planned, marks=marks
            )
            return replace(advanced, decisions=epochs.to_decisions())

        self._commit(session, files, within=spans_of(added), after=after, topic_ids=topic_ids)

    def _decide_epochs(self, files: Sequence[WrittenFile], added: Ranges) -> Decision:
        decide = partial(
            decide_epochs, self._ledger, sources=self._plan.sources, planned=self._plan.planned, added=added
        )
        epochs = decide(files)
        if not epochs.straddling:
            return epochs
        return decide(with_runs_apart(files, epochs.straddling, folder=self._uri))

    def _fill(self, session: SparkSession, spans: Spans) -> None:
        """Parts of gaps, one commit. Who was overtaken commits nothing: the step is taken."""
        if self._read_again is None:
            raise RuntimeError("a gap cannot be filled by whoever reads forward only")
        logger.info("gaps are read", extra={"ranges": in_words(spans)})
        files = self._decoded(self._read_again(session, spans), hull_of(spans))

        def after(seen: str | None) -> Ledger:
            step = filled(self._ledger, spans, attempt=self._application.attempt, seen_through=seen)
            return replace(step, decisions=signed(step.decisions, self._application.request))

        self._commit(session, files, within=spans, after=after, topic_ids=self._asked_topic_ids())
        self._filled = together(self._filled, spans)

    def _commit(
        self,
        session: SparkSession,
        files: Sequence[WrittenFile],
        *,
        within: Spans,
        after: Callable[[str | None], Ledger],
        topic_ids: Mapping[str, str] | None,
    ) -> None:
        """`after` is told the newest commit time at the source that the files hold."""
        if topic_ids is not None:
            # A topic that was made again while it was read gives out records that are not the plan's.
            refuse_other_topics(self._plan, topic_ids)
        fresh = Added.of_files(files)
        run = Added.together([*(commit.added for commit in self._commits), fresh])
        self._warn_of_bad_rows(fresh)
        seen = fresh.seen_through
        ledger = after(None if seen is None else seen.isoformat())
        limit = self.table.quarantine_limit
        ends = all(backlog <= 0 for backlog in going_on(self._plan, ledger).backlogs())
        refuse_in_mass(run, limit, table=self.table.name, before=self._undecodable, ends=ends)
        undecodable = share_after(run, limit, before=self._undecodable)
        ledger = replace(ledger.counting(fresh.rows, behind=self._ledger), undecodable=undecodable)
        with self._timed("commit"):
            commit = append(
                session,
                files,
                uri=self._uri,
                within=within,
                before=self._ledger,
                after=self._claiming(ledger),
                schema=self._prepared().schema,
                known=self._known,
            )
        self._ledger, self._known = commit.ledger, commit.version
        self._commits.append(commit)
        logger.info("batch committed", extra={"seq": commit.ledger.seq, "rows": commit.added.rows})
        for opened in commit.ledger.decisions.get(EPOCHS_OPENED, ()):
            logger.warning("source epoch opened", extra=opened)

    def _claiming(self, ledger: Ledger) -> Ledger:
        return replace(ledger, valid_through=claim_of_bronze(ledger, self._confirmations).valid)

    def _written(self, batch: DataFrame, added: Ranges) -> list[WrittenFile]:
        """Files that hold the batch; read again where Spark's source cannot give its records out."""
        try:
            return self._decoded(batch, added)
        except Exception as exc:
            first = unfit_timestamp(str(exc))
            if self._read_again is None or first is None:
                raise
        logger.warning("a timestamp fits nowhere: the batch is read again", extra={"first": first})
        return self._decoded(self._read_again(batch.sparkSession, spans_of(added)), added)

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
        result = told(
            self._commits,
            plan=self._plan,
            ledger=self._ledger,
            amended=self._amended,
            filled=self._filled,
            drain={**self.progress.pace().report(), "tables": self._tables},
            registry={} if self._decoder is None else self._decoder.registry,
            seconds=self._seconds,
        )
        decoder = self._decoder
        unproven = None if decoder is None else ", ".join(decoder.unproven()) or None
        decisions = signed(result.decisions, self._application.request)
        claim = claim_of_bronze(self._ledger, self._confirmations).told()
        return replace(result, unproven_source=unproven, decisions=decisions, **claim)

"""A table of any size in silver, level with its bronze, and batches of changes that bronze gets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from bench.merge_changes import Batch  # type: ignore[import-not-found]
from bench.merge_rows import COLUMNS, NAMES, row_of  # type: ignore[import-not-found]
from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.session import LazySession
from cdc_lakehouse.config.models import Deletes, Pipeline
from cdc_lakehouse.contract import Job, JobRequest
from cdc_lakehouse.lake.applied import Applied
from cdc_lakehouse.lake.bronze_schema import table_schema
from cdc_lakehouse.lake.delta_transaction import DeltaTransaction
from cdc_lakehouse.lake.ledger import Kind, Ledger, transaction_ids
from cdc_lakehouse.lake.names import Lake, new_attempt
from cdc_lakehouse.lake.progress import Progress
from cdc_lakehouse.lake.tables import create_if_missing
from cdc_lakehouse.lake.transaction import fenced_statement
from cdc_lakehouse.silver.look import MergeTask, look_at
from cdc_lakehouse.silver.plan import first_ledger
from cdc_lakehouse.silver.schema.table_schema import silver_properties, silver_schema
from cdc_lakehouse.silver.table_merge import merge_table

PIPELINE, TABLE, TOPIC = "bench", "orders", "shop.public.orders"
SOURCE = f"{TOPIC}@topic-1"
ROWS_PER_FILE = 1_500_000
"""About 100 MB, in the order of the key: what OPTIMIZE leaves of a table whose keys count up."""
BRONZE = table_schema(COLUMNS)


@dataclass(slots=True)
class MergeLake:
    """The lake of one table, and the application that merges it."""

    engine: LazySession
    root: str
    rows: int
    held: Ledger = field(
        default_factory=lambda: Ledger(
            kind=Kind.BRONZE,
            pipeline=PIPELINE,
            table=TABLE,
            cluster_id="cluster-1",
            seq=1,
            attempt=new_attempt(datetime.now(UTC)),
            sources={SOURCE: {0: Progress.begun(0)}},
        )
    )
    """What bronze states."""

    @property
    def lake(self) -> Lake:
        return Lake(root=self.root, pipeline=PIPELINE)

    @property
    def bronze(self) -> str:
        return self.lake.bronze(TABLE)

    @property
    def silver(self) -> str:
        return self.lake.silver(TABLE)

    @property
    def plain(self) -> str:
        """The same rows as anybody would keep them."""
        return f"{self.root}/plain"

    def build(self) -> None:
        """Once, into an empty folder."""
        session = self.engine.isolated()
        create_if_missing(session, self.bronze, schema=BRONZE, properties={})
        _state(session, self.bronze, self.held)
        rows = _with_system_columns(source_rows(session, self.rows))
        schema = silver_schema(rows.schema, deletes=Deletes.HARD)
        create_if_missing(
            session, self.silver, schema=_nullable(schema), properties=silver_properties(vectors=True)
        )
        level = replace(
            first_ledger(self.held), seq=1, attempt=self.held.attempt, applied=Applied(reached=(0, 1))
        )
        with fenced_statement(session, level):
            rows.write.format("delta").mode("append").save(self.silver)
        rows.select(*NAMES).write.format("delta").save(self.plain)

    def add(self, batch: Batch) -> tuple[int, int]:
        """Bronze gets `batch`, in a commit of its own; the range of its offsets."""
        session = self.engine.isolated()
        start = self.held.end(SOURCE, 0) or 0
        span = (start, start + batch.changes)
        self.held = self.held.advanced(
            {SOURCE: {0: span}}, attempt=self.held.attempt, seen_through="2026-01-02T00:00:00+00:00"
        )
        rows = batch.rows(session, BRONZE, start=start, keys=self.rows)
        with fenced_statement(session, self.held):
            rows.write.format("delta").mode("append").save(self.bronze)
        return span

    def merge(self) -> None:
        """What the job does with one table, in a warm Spark."""
        application = self._application()
        found = look_at(application, application.tables[0])
        if not isinstance(found, MergeTask):
            raise TypeError(f"nothing to merge: {found}")
        merge_table(application, found)

    def _application(self) -> Application:
        document = {
            "version": 1,
            "name": PIPELINE,
            "owner": "bench",
            "schedule": "0 * * * *",
            "start_date": date(2026, 1, 1),
            "tables": [{"name": TABLE, "topics": [TOPIC]}],
        }
        pipeline = Pipeline.model_validate(document)
        return Application(
            request=JobRequest(job=Job.SILVER_MERGE, pipeline=PIPELINE, tables=()),
            pipeline=pipeline,
            tables=pipeline.tables,
            lake=self.lake,
            attempt=new_attempt(datetime.now(UTC)),
            spark=self.engine,
        )


def merge_lake(engine: LazySession, folder: Path, *, rows: int) -> MergeLake:
    folder.mkdir(parents=True)
    found = MergeLake(engine, folder.as_uri(), rows)
    found.build()
    return found


def source_rows(session: SparkSession, rows: int) -> DataFrame:
    """Keys count up from 0, as serial numbers do."""
    numbers = session.range(0, rows, 1, max(2, -(-rows // ROWS_PER_FILE)))
    return numbers.select(*(value.alias(name) for name, value in row_of(F.col("id"), F.lit(0)).items()))


def _with_system_columns(rows: DataFrame) -> DataFrame:
    """As a snapshot leaves them."""
    zero = F.lit(0).cast("bigint")
    fields = ("epoch", "phase", "commit", "streamed", "row", "order_in_tx", "kind")
    position = F.struct(
        *((F.lit(1).cast("bigint") if each == "commit" else zero).alias(each) for each in fields)
    )
    return rows.select(
        "*",
        F.lit("r").alias("_cdc_op"),
        position.alias("_cdc_position"),
        F.lit(1).cast("bigint").alias("_cdc_tx_id"),
        F.lit("2026-01-01 00:00:00").cast("timestamp").alias("_cdc_commit_ts"),
        F.lit(None).cast("array<string>").alias("_cdc_incomplete"),
    )


def _nullable(schema: StructType) -> StructType:
    """Of a table: Delta would take a column of the first rows for one that is never NULL."""
    return StructType.fromJson(_all_nullable(schema.jsonValue()))


def _all_nullable(document: object) -> object:
    if isinstance(document, list):
        return [_all_nullable(each) for each in document]
    if isinstance(document, dict):
        return {name: True if name == "nullable" else _all_nullable(each) for name, each in document.items()}
    return document


def _state(session: SparkSession, uri: str, ledger: Ledger) -> None:
    transaction = DeltaTransaction.start(session, uri)
    transaction.commit([], transaction_ids(ledger), metadata=ledger.to_json(), step=ledger.seq)

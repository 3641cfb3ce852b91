"""Drain: read everything that is in Kafka now, in micro-batches, and stop."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from cdc_lakehouse.bronze.checkpoint import end_of_batch, starting_offsets
from cdc_lakehouse.bronze.layout import Layout
from cdc_lakehouse.bronze.progress import Progress
from cdc_lakehouse.bronze.source_settings import SOURCE_SETTINGS
from cdc_lakehouse.errors import CheckpointTakenError
from cdc_lakehouse.kafka.facts import TopicFacts
from cdc_lakehouse.lake import files
from cdc_lakehouse.lake.ledger import Ranges

logger = logging.getLogger(__name__)

WriteBatch = Callable[[DataFrame, Ranges], None]
Offsets = Mapping[str, Mapping[int, int]]


class Reading(Protocol):
    """What one query reads: a table's plan, or that of several."""

    @property
    def table(self) -> str: ...
    @property
    def topics(self) -> Sequence[TopicFacts]: ...
    @property
    def start(self) -> Offsets: ...
    def added(self, start: Offsets, end: Offsets) -> Ranges: ...


def drain(
    session: SparkSession,
    plan: Reading,
    *,
    write: WriteBatch,
    checkpoint: str,
    kafka: Mapping[str, str],
    max_offsets_per_trigger: int,
    layout: Layout,
    progress: Progress,
) -> None:
    """Call `write` with each micro-batch and its exact range, in order; raise what it raised.

    The checkpoint is scratch: it starts at the ledger's end and nobody reads it afterwards. A second
    call with a plan that was carried out already is stopped by `write`.
    """
    refuse_unless_empty(checkpoint, plan)
    records = _records(
        session,
        plan,
        kafka=kafka,
        max_offsets_per_trigger=max_offsets_per_trigger,
        records_per_task=layout.records_per_task,
    )
    batches = _Batches(
        plan=plan,
        write=write,
        checkpoint=checkpoint,
        position=plan.start,
        tasks=layout.tasks,
        progress=progress,
    )
    query = (
        records.writeStream.foreachBatch(batches.on_batch)
        .option("checkpointLocation", checkpoint)
        .queryName(f"drain {plan.table}")
        .trigger(availableNow=True)
        .start()
    )
    try:
        with progress:
            query.awaitTermination()
    except Exception:
        if batches.failure is not None:
            raise batches.failure from None
        raise
    finally:
        if query.isActive:
            query.stop()


def offsets_in(added: Ranges) -> int:
    """Transactions and compaction leave fewer records than that."""
    return sum(until - start for partitions in added.values() for start, until in partitions.values())


def refuse_unless_empty(checkpoint: str, plan: Reading) -> None:
    """Spark would begin where a checkpoint that is there already ends, and not where the plan does."""
    if files.folders(checkpoint):
        raise CheckpointTakenError(table=plan.table, path=checkpoint)


def _records(
    session: SparkSession,
    plan: Reading,
    *,
    kafka: Mapping[str, str],
    max_offsets_per_trigger: int,
    records_per_task: int,
) -> DataFrame:
    return (
        session.readStream.format("kafka")
        .options(**{f"kafka.{key}": value for key, value in {**SOURCE_SETTINGS, **kafka}.items()})
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", ",".join(topic.name for topic in plan.topics))
        .option("startingOffsets", starting_offsets(plan.start))
        .option("maxOffsetsPerTrigger", max_offsets_per_trigger)
        .option("maxRecordsPerPartition", records_per_task)
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "true")
        .load()
    )


@dataclass(slots=True)
class _Batches:
    """Spark's callback: knows where the batch before ended, keeps what `write` raised."""

    plan: Reading
    write: WriteBatch
    checkpoint: str
    position: Offsets
    tasks: int | None
    progress: Progress
    failure: Exception | None = None
    context: Context = field(default_factory=copy_context)
    """Spark calls from a thread of its own, which knows nothing of the facts bound to log lines."""

    def on_batch(self, batch: DataFrame, batch_id: int) -> None:
        self.context.run(self._on_batch, batch, batch_id)

    def _on_batch(self, batch: DataFrame, batch_id: int) -> None:
        end = end_of_batch(self.checkpoint, batch_id)
        added = self.plan.added(self.position, end)
        logger.info("batch planned", extra={"batch": batch_id, "ranges": added})
        offsets = offsets_in(added)
        self.progress.reading(offsets)
        try:
            self.write(batch if self.tasks is None else batch.coalesce(self.tasks), added)
        except Exception as exc:
            # The way through the JVM would turn it into text.
            self.failure = exc
            raise
        self.progress.committed(offsets)
        self.position = end

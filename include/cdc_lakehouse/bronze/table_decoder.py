"""Decode records of one table with the writer schemas that are known, and learn those that turn up."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import Protocol, TypeVar

from pyspark.sql.types import StructType

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.avro.schema_refs import in_order
from cdc_lakehouse.avro.unknown import unknown_ids_by_place
from cdc_lakehouse.bronze.batch_size import outgrew
from cdc_lakehouse.bronze.schemas import PERSISTS, KnownSchemas, resolve_subjects, resolve_unknown
from cdc_lakehouse.bronze.worker_failures import known_failure
from cdc_lakehouse.config.models import OutOfRange, Raw, Table
from cdc_lakehouse.debezium.plans import DecodePlans
from cdc_lakehouse.debezium.proven import refuse_unproven, unproven_connectors
from cdc_lakehouse.lake.bronze_schema import columns_in, has_row, table_schema
from cdc_lakehouse.lake.ledger import Ranges
from cdc_lakehouse.lake.schema_archive import SchemaArchive
from cdc_lakehouse.registry.client import SchemaRegistry
from cdc_lakehouse.registry.writer_schemas import WriterSchemas

logger = logging.getLogger(__name__)

T_co = TypeVar("T_co", covariant=True)


class Work(Protocol[T_co]):
    """Decoding in the workers; whatever it leaves when it raises must be nothing to anybody."""

    def __call__(self, plans: DecodePlans, *, wide: bool) -> T_co: ...


class TableDecoder:
    """Of one attempt at one table: begins with all versions of its subjects."""

    def __init__(
        self,
        application: Application,
        table: Table,
        *,
        registry: SchemaRegistry,
        existing: StructType | None,
        quarantined: bool = False,
    ) -> None:
        """`existing` is the schema of bronze; the columns that it has stay, whatever the registry says.

        Records that are `quarantined` already may name schemas that nobody knows.
        """
        self._quarantined = quarantined
        self._table = table
        self._registry = registry.for_table()
        self._root = application.lake.bronze(table.name)
        archive = SchemaArchive(application.lake.schemas(registry.name))
        self._writers = WriterSchemas(self._registry, archive, table=table.name)
        self._wide = False
        self._placeholders = application.pipeline.unavailable_value_placeholder
        self._accepts_unproven = application.pipeline.unproven_source
        self._known: KnownSchemas = resolve_subjects(
            self._writers,
            table.topics,
            table=table.name,
            existing=columns_in(existing) if existing is not None and has_row(existing) else None,
            dropped=frozenset(table.drop_columns),
            policy=table.on_schema_change,
        )
        self._refuse_unproven()

    @property
    def schema(self) -> StructType:
        """Of bronze rows, as far as it has grown."""
        return table_schema(self._known.columns)

    @property
    def registry(self) -> dict[str, str | int]:
        """As a report tells it."""
        return {"source": self._writers.source.value, "calls": self._registry.calls}

    def unproven(self) -> list[str]:
        """Return the connectors that were never proven and that the pipeline accepts."""
        return unproven_connectors(self._value_texts())

    def _refuse_unproven(self) -> None:
        if not self._accepts_unproven:
            refuse_unproven(self._value_texts(), table=self._table.name)

    def _value_texts(self) -> list[str]:
        return [self._known.texts[ref] for ref in self._known.values]

    def decoded(
        self,
        work: Work[T_co],
        *,
        batch: Ranges,
        topic_ids: Mapping[str, str],
    ) -> T_co:
        """What `work` returns for the plans, and for whether `batch` has wide records.

        It runs again when a worker met an unknown schema, or records that are too wide for what it assumed.
        """
        while True:
            try:
                return work(self.plans(topic_ids), wide=self._wide)
            except Exception as exc:
                if (known := known_failure(str(exc), root=self._root, table=self._table.name)) is not None:
                    raise known from exc
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
                self._known = resolve_unknown(
                    self._writers,
                    self._known,
                    unknown,
                    batch=batch,
                    persists=timedelta() if self._quarantined else PERSISTS,
                )
                self._refuse_unproven()

    def plans(self, topic_ids: Mapping[str, str]) -> DecodePlans:
        """For a worker, with all schemas that are known by now."""
        return DecodePlans(
            table=self._table.name,
            columns=self._known.columns,
            schemas=self._known.texts,
            unknown=self._known.unknown,
            wrong_keys=self._known.wrong_keys,
            wrong_values=self._known.wrong_values,
            topic_ids=topic_ids,
            keep_raw=self._table.raw is Raw.ALWAYS,
            dropped=self._known.dropped,
            placeholders=self._placeholders,
            null_if_out_of_range=self._table.out_of_range is OutOfRange.AS_NULL,
        )

"""Decode records of the quarantine again, where they stand: the cases of those that decode are closed.

Rows change in place, so no coordinate is ever there twice, and the ledger of that commit says which:
silver then computes their keys anew.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.bronze.decode_udf import decoded_parts, for_python, stamp_of
from cdc_lakehouse.bronze.in_place import PLACE, Place, change_in_place, within_of
from cdc_lakehouse.bronze.table_decoder import TableDecoder
from cdc_lakehouse.bronze.worker_versions import installed, refuse_other_versions
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import TableResult, TableStatus
from cdc_lakehouse.debezium.plans import DecodePlans
from cdc_lakehouse.lake.bronze_schema import table_schema
from cdc_lakehouse.lake.cases import waits
from cdc_lakehouse.lake.coordinates import with_topic_id
from cdc_lakehouse.lake.ledger import Ledger, Ranges
from cdc_lakehouse.lake.quarantine import ERROR
from cdc_lakehouse.registry.client import SchemaRegistry

logger = logging.getLogger(__name__)

Condition = Callable[[], Column]
"""Makes a condition on rows of bronze with a `topic_id`; no column can be made before there is a session."""


class TableReplay:
    """One table of one attempt. A second one finds only what could not be decoded this time."""

    def __init__(self, application: Application, table: Table, *, registry: SchemaRegistry) -> None:
        self._application = application
        self._table = table
        self._registry = registry
        self._uri = application.lake.bronze(table.name)

    def run(self, *, waiting: int, version: int, held: Ledger, meant: Condition | None = None) -> TableResult:
        """Decode again what `version`, whose ledger is `held`, has undecoded: `waiting` records.

        With `meant` only those of the records that meet it.
        """
        started = time.monotonic()
        session = self._application.spark.isolated()
        records, decoder = self._records(session, version, meant)
        attempt = self._application.attempt

        def decode(plans: DecodePlans, *, wide: bool) -> tuple[DataFrame, list[Row]]:
            rows = _decoded(records, plans, attempt=attempt, wide=wide, only_sound=True).persist()
            try:
                return rows, rows.select(*PLACE).collect()
            except Exception:
                rows.unpersist()
                raise

        rows, places = decoder.decoded(decode, batch=_all_of(held), topic_ids={})
        try:
            if places:
                version = change_in_place(
                    session,
                    rows,
                    count=len(places),
                    within=within_of(map(_place, places), held),
                    lake=self._application.lake,
                    held=held,
                    attempt=attempt,
                )
        finally:
            rows.unpersist()
        logger.info("quarantine replayed", extra={"closed": len(places), "left": waiting - len(places)})
        return TableResult(
            table=self._table.name,
            status=TableStatus.ADVANCED if places else TableStatus.IDLE,
            rows=len(places),
            counts={"waiting": waiting, "closed": len(places)},
            open_cases=waiting - len(places),
            seconds={"replay": round(time.monotonic() - started, 3)},
            versions={"bronze": version},
            registry=decoder.registry,
        )

    def preview(self, *, version: int, held: Ledger, meant: Condition | None = None) -> dict[str | None, int]:
        """Return how many records would decode now (under None), and how many would not, by code.

        Bronze stays as it is.
        """
        records, decoder = self._records(self._application.spark.isolated(), version, meant)
        attempt = self._application.attempt

        def decode(plans: DecodePlans, *, wide: bool) -> list[Row]:
            rows = _decoded(records, plans, attempt=attempt, wide=wide, only_sound=False)
            counts: list[Row] = rows.groupBy(F.col(f"{ERROR}.code").alias("code")).count().collect()
            return counts

        rows = decoder.decoded(decode, batch=_all_of(held), topic_ids={})
        return {row["code"]: row["count"] for row in rows}

    def _records(
        self, session: SparkSession, version: int, meant: Condition | None
    ) -> tuple[DataFrame, TableDecoder]:
        """Return the records that are to be decoded again, and what decodes them."""
        bronze = session.read.format("delta").option("versionAsOf", version).load(self._uri)
        decoder = TableDecoder(
            self._application, self._table, registry=self._registry, existing=bronze.schema, quarantined=True
        )
        rows = with_topic_id(bronze)
        wanted = waits(rows) if meant is None else waits(rows) & meant()
        return _as_kafka_gave_them(rows.where(wanted)), decoder


def _place(row: Row) -> Place:
    return row["topic"], row["partition"], row["offset"], row["topic_id"]


def _as_kafka_gave_them(rows: DataFrame) -> DataFrame:
    """Undecodable rows have all of it: bytes, headers and coordinates."""
    return rows.select(
        F.col("raw_key").alias("key"),
        F.col("raw_value").alias("value"),
        *PLACE,
        F.col("kafka_timestamp").alias("timestamp"),
        "headers",
    )


def _decoded(
    records: DataFrame, plans: DecodePlans, *, attempt: str, wide: bool, only_sound: bool
) -> DataFrame:
    """Return bronze rows of the records; `only_sound` those that decode now."""
    shared = records.sparkSession.sparkContext.broadcast(plans)
    decode = _decoder(shared, stamp_of(attempt), only_sound=only_sound)
    return for_python(records, wide=wide, more=("topic_id",)).mapInArrow(decode, table_schema(plans.columns))


def _decoder(
    shared: Broadcast[DecodePlans], stamp: Mapping[str, pa.Scalar], *, only_sound: bool
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    driver = installed()

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        refuse_other_versions(driver, worker=installed())
        for batch in batches:
            for records, rows, _seconds in decoded_parts(batch, shared.value, stamp=stamp):
                place = rows.schema.get_field_index("topic_id")
                replayed = rows.set_column(place, rows.schema.field(place), records.column("topic_id"))
                sound = replayed.column(ERROR).is_null()
                yield replayed.filter(sound) if only_sound else replayed

    return decode


def _all_of(held: Ledger) -> Ranges:
    """Where such records may stand, for whoever is told that one of them names a strange schema."""
    return {
        source: {partition: (progress.floor, progress.end) for partition, progress in partitions.items()}
        for source, partitions in held.sources.items()
    }

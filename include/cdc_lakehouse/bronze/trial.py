"""Decode records of the quarantine on trial, without Spark: would a replay decode any of them?

The look before the job asks that, so that records which nobody can decode do not start a JVM in every run.
"""

from __future__ import annotations

import logging

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.bronze.decode_udf import decoded_parts, stamp_of
from cdc_lakehouse.bronze.table_decoder import TableDecoder
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.debezium.plans import DecodePlans
from cdc_lakehouse.errors import LakehouseError
from cdc_lakehouse.lake.interval import Interval, records_of_cases
from cdc_lakehouse.lake.snapshot import newest_snapshot
from cdc_lakehouse.registry.client import SchemaRegistry

logger = logging.getLogger(__name__)

MOST_RECORDS = 1_000
"""Records that a look decodes at most."""


def count_decodable(
    application: Application, table: Table, interval: Interval, *, registry: SchemaRegistry
) -> int | None:
    """Count undecodable records of the interval that decode now; None where that is left to the job."""
    uri = application.lake.bronze(table.name)
    snapshot, records = newest_snapshot(uri), records_of_cases(uri, interval, most=MOST_RECORDS)
    if snapshot is None or records is None:
        return None
    batch = _as_kafka_gave_them(records)
    stamp = stamp_of(application.attempt)

    def count(plans: DecodePlans, *, wide: bool) -> int:
        del wide
        parts = decoded_parts(batch, plans, stamp=stamp)
        return sum(rows.column("decode_error").null_count for _, rows, _ in parts)

    try:
        existing = from_arrow_schema(snapshot.schema)
        decoder = TableDecoder(application, table, registry=registry, existing=existing, quarantined=True)
        return decoder.decoded(count, batch={}, topic_ids={})
    except LakehouseError as error:
        logger.info("undecodable records are left to the job", extra={"sentence": str(error)})
        return None


def _as_kafka_gave_them(records: pa.Table) -> pa.RecordBatch:
    """Undecodable rows have all of it: bytes, headers and coordinates."""
    names = {"raw_key": "key", "raw_value": "value", "kafka_timestamp": "timestamp"}
    renamed = records.rename_columns([names.get(name, name) for name in records.column_names])
    return renamed.combine_chunks().to_batches()[0]

"""Kafka records into bronze rows: one row out per record in, in the same order."""

from __future__ import annotations

import pyarrow as pa

from cdc_lakehouse.debezium.plans import DecodePlans


def decode(batch: pa.RecordBatch, plans: DecodePlans) -> pa.RecordBatch:
    """Rows of `bronze_schema(plans.columns)`.

    A record that cannot be decoded becomes a row with `decode_error` and its bytes; it never raises
    and never costs its neighbours anything. Raises `UnknownSchemaIdsError` (`avro.unknown`) for the
    whole batch when records carry schema ids that `plans.schemas` does not hold.
    """
    raise NotImplementedError

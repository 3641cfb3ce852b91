"""The bronze row as the decoder gives it out: everything but `ingested_at` and `attempt`."""

from __future__ import annotations

import pyarrow as pa

from cdc_lakehouse.debezium.columns import Column, TableColumns
from cdc_lakehouse.debezium.source import SOURCE_TYPE

POSITION_FIELDS = ("phase", "commit", "streamed", "row", "order_in_tx", "kind")
POSITION_TYPE = pa.struct([(name, pa.int64()) for name in POSITION_FIELDS])
TRANSACTION_TYPE = pa.struct(
    [("id", pa.string()), ("total_order", pa.int64()), ("data_collection_order", pa.int64())]
)
HEADERS_TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
DECODE_ERROR_TYPE = pa.struct([("code", pa.string()), ("detail", pa.string())])


def struct_of(columns: tuple[Column, ...]) -> pa.DataType:
    return pa.struct([(column.name, column.type) for column in columns])


def bronze_schema(columns: TableColumns) -> pa.Schema:
    """What `decode` returns for a table with these columns; every field is nullable."""
    row = struct_of(columns.row)
    return pa.schema(
        [
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("kafka_timestamp", pa.timestamp("us", tz="UTC")),
            ("key_schema_id", pa.int32()),
            ("value_schema_id", pa.int32()),
            ("op", pa.string()),
            ("position", POSITION_TYPE),
            ("key", struct_of(columns.key)),
            ("before", row),
            ("after", row),
            ("unavailable", pa.list_(pa.string())),
            ("source", SOURCE_TYPE),
            ("transaction", TRANSACTION_TYPE),
            ("headers", HEADERS_TYPE),
            ("decode_error", DECODE_ERROR_TYPE),
            ("raw_key", pa.binary()),
            ("raw_value", pa.binary()),
        ]
    )

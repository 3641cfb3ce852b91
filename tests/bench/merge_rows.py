"""The rows of the table that merges are measured on: ten columns, the same for whoever asks."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from cdc_lakehouse.debezium.columns import Column as SourceColumn
from cdc_lakehouse.debezium.columns import TableColumns

COLUMNS = TableColumns(
    key=(SourceColumn("id", pa.int64()),),
    row=(
        SourceColumn("id", pa.int64()),
        SourceColumn("customer_id", pa.int64()),
        SourceColumn("status", pa.string()),
        SourceColumn("note", pa.string()),
        SourceColumn("amount", pa.decimal128(12, 2)),
        SourceColumn("quantity", pa.int32()),
        SourceColumn("weight", pa.float64()),
        SourceColumn("country", pa.string()),
        SourceColumn("created_at", pa.timestamp("us", tz="UTC")),
        SourceColumn("updated_at", pa.timestamp("us", tz="UTC")),
    ),
)
NAMES = tuple(column.name for column in COLUMNS.row)


def row_of(key: Column, version: Column) -> dict[str, Column]:
    """The row of `key` after its change number `version`: its values are a function of both."""
    dice = F.xxhash64(key, version)
    began = F.timestamp_micros(F.lit(1_700_000_000_000_000) + key * 1_000_000)
    return {
        "id": key,
        "customer_id": F.pmod(dice, F.lit(1_000_003)),
        "status": F.element_at(
            F.split(F.lit("new,paid,sent,done"), ","), F.pmod(dice, F.lit(4)).cast("int") + 1
        ),
        "note": F.concat(F.lit("order of "), F.hex(dice), F.lit(" "), F.hex(F.xxhash64(dice))),
        "amount": (F.pmod(dice, F.lit(10_000_000)) / 100).cast("decimal(12,2)"),
        "quantity": F.pmod(dice, F.lit(97)).cast("int"),
        "weight": F.pmod(dice, F.lit(100_000)) / 1000.0,
        "country": F.substring(F.hex(F.pmod(dice, F.lit(200))), -2, 2),
        "created_at": began,
        "updated_at": F.timestamp_micros(F.unix_micros(began) + version),
    }

"""A table is made whatever a process that ended too early has left in its folder."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql.types import LongType, StringType, StructField, StructType

from cdc_lakehouse.lake.rows import read_rows
from cdc_lakehouse.lake.tables import create_if_missing, schema_of

SCHEMA = StructType([StructField("id", LongType()), StructField("note", StringType())])
PROPERTIES = {"delta.enableTypeWidening": "true"}


@pytest.mark.parametrize(
    "left", [(), ("_delta_log",), ("_delta_log", "_delta_log/.00000000000000000000.json.1.tmp")]
)
def test_a_table_is_made_over_what_a_crash_left(spark, tmp_path, left):
    folder = Path(tmp_path / "orders")
    for name in left:
        path = folder / name
        path.write_text("{") if path.suffix else path.mkdir(parents=True)

    create_if_missing(spark, folder.as_uri(), schema=SCHEMA, properties=PROPERTIES)

    (created,) = DeltaTable(str(folder)).history()
    assert created["operation"] == "CREATE TABLE"
    assert schema_of(spark, folder.as_uri()) == SCHEMA


def test_a_table_that_is_there_stays_as_it_is(spark, tmp_path):
    uri = tmp_path.as_uri()
    create_if_missing(spark, uri, schema=SCHEMA, properties=PROPERTIES)

    create_if_missing(spark, uri, schema=StructType(SCHEMA.fields[:1]), properties={})

    assert schema_of(spark, uri) == SCHEMA
    assert DeltaTable(str(tmp_path)).version() == 0
    assert DeltaTable(str(tmp_path)).metadata().configuration["delta.enableTypeWidening"] == "true"


def test_rows_of_a_table_whose_checkpoint_has_a_time_before_our_era_are_read(spark, tmp_path):
    uri = tmp_path.as_uri()
    spark.sql(
        f"CREATE TABLE delta.`{uri}` USING delta TBLPROPERTIES ('delta.checkpointInterval' = '1') AS"
        " SELECT CAST(timestamp_micros(-63517780800000000) AS TIMESTAMP_NTZ) AS at"
    )
    spark.sql(f"INSERT INTO delta.`{uri}` SELECT CAST(timestamp_micros(0) AS TIMESTAMP_NTZ)")

    rows = read_rows(uri)

    assert list(tmp_path.glob("_delta_log/*.checkpoint.parquet")) != []
    assert rows is not None
    assert sorted(rows["at"].cast(pa.int64()).to_pylist()) == [-63517780800000000, 0]

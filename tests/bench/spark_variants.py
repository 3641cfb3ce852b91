"""Who decodes inside Spark: key and value of every record, the full envelope unless the name says less."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from bench.record_readers import confluent_readers, fastavro_readers  # type: ignore[import-not-found]
from bench.spark_types import spark_type  # type: ignore[import-not-found]
from bench.streams import FIRST_VALUE_ID, Stream, dropped_of, plans_of  # type: ignore[import-not-found]
from cdc_lakehouse.bronze.decode_udf import decoded, for_python, stamp_of
from cdc_lakehouse.debezium.bronze import POSITION_FIELDS
from cdc_lakehouse.debezium.plans import DecodePlans
from cdc_lakehouse.lake.bronze_schema import ATTEMPT, INGESTED_AT, table_schema

_COORDINATES = ("topic", "partition", "offset", "timestamp", "headers")
_FRAME = 5
_ALL = 2**31 - 1
Plan = Callable[[Stream, DataFrame], DataFrame]


@dataclass(frozen=True, slots=True)
class Variant:
    name: str
    does: str
    gives: str
    """How its rows are compared: `envelope`, `bronze`, `kept`, `bytes`."""
    plan: Plan
    one_id_only: bool = False


def _baseline(stream: Stream, rows: DataFrame) -> DataFrame:
    key_text, value_texts = stream.key_text, stream.value_texts

    def read(keys: pd.Series, values: pd.Series) -> pd.DataFrame:
        read_key, read_value = confluent_readers(key_text, value_texts)
        return pd.DataFrame({"key": [*map(read_key, keys)], "value": [*map(read_value, values)]})

    udf = F.pandas_udf(read, _envelope_type(stream))
    return rows.select(*_COORDINATES, udf("key", "value").alias("record")).select(
        *_COORDINATES, "record.key", "record.value"
    )


def _fastavro(stream: Stream, rows: DataFrame) -> DataFrame:
    key_text, value_texts = stream.key_text, stream.value_texts
    told = _with_headers(rows)
    schema = StructType([*(told.schema[name] for name in _COORDINATES), *_envelope_type(stream).fields])
    final = to_arrow_schema(schema, timezone="UTC")

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        read_key, read_value = fastavro_readers(key_text, value_texts)
        for batch in batches:
            keys = [read_key(data) for data in batch["key"].to_pylist()]
            values = [read_value(data) for data in batch["value"].to_pylist()]
            sides = [pa.array(keys, final.field("key").type), pa.array(values, final.field("value").type)]
            columns = [batch[name] for name in _COORDINATES]
            yield pa.RecordBatch.from_arrays([*columns, *sides], names=final.names)

    return told.mapInArrow(read, schema)


def _ours(stream: Stream, rows: DataFrame) -> DataFrame:
    return _decoded(stream, rows, plans_of(stream))


def _ours_projected(stream: Stream, rows: DataFrame) -> DataFrame:
    return _decoded(stream, rows, plans_of(stream, dropped=dropped_of(stream)))


def _decoded(stream: Stream, rows: DataFrame, plans: DecodePlans) -> DataFrame:
    """The product's worker up to where it would write a file; the rows go back to Spark instead."""
    shared, stamp = rows.sparkSession.sparkContext.broadcast(plans), stamp_of("bench")

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for found, _ in decoded(batches, shared.value, stamp=stamp):
            yield found

    return for_python(rows, wide=stream.shape.wide).mapInArrow(read, _given_out(table_schema(plans.columns)))


_ALWAYS_THERE = frozenset(
    {"topic", "partition", "offset", "kafka_timestamp", *POSITION_FIELDS, INGESTED_AT.name, ATTEMPT.name}
)


def _given_out(schema: StructType) -> StructType:
    """The table's schema, where Spark need not ask of every value that it gets back whether it is null."""
    fields = [
        StructField(field.name, _given_out(field.dataType))
        if field.name == "position"
        else StructField(field.name, field.dataType, field.name not in _ALWAYS_THERE)
        for field in schema
    ]
    return StructType(fields)


def _from_avro(stream: Stream, rows: DataFrame) -> DataFrame:
    (value_text,) = stream.value_texts.values()
    key = from_avro(F.substring("key", _FRAME + 1, _ALL), stream.key_text)
    value = from_avro(F.substring("value", _FRAME + 1, _ALL), value_text)
    return rows.select(*_COORDINATES, key.alias("key"), value.alias("value"))


def _identity(_stream: Stream, rows: DataFrame) -> DataFrame:
    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    told = _with_headers(rows)
    return told.mapInArrow(same, told.schema)


def _scan(_stream: Stream, rows: DataFrame) -> DataFrame:
    return rows


def _with_headers(rows: DataFrame) -> DataFrame:
    """An empty list for no headers: on its way to Python a null one costs Spark more than all the rest."""
    empty = F.array().cast(rows.schema["headers"].dataType)
    return rows.withColumn("headers", F.coalesce("headers", empty))


def _envelope_type(stream: Stream) -> StructType:
    key = spark_type(json.loads(stream.key_text))
    value = spark_type(json.loads(stream.value_texts[FIRST_VALUE_ID]))
    return StructType([StructField("key", key), StructField("value", value)])


VARIANTS = {
    each.name: each
    for each in (
        Variant(
            "baseline",
            "the usual way: a pandas_udf that calls AvroDeserializer(schema_str=None) per record",
            "envelope",
            _baseline,
        ),
        Variant("fastavro", "mapInArrow, fastavro.schemaless_reader per record", "envelope", _fastavro),
        Variant("ours", "the product's UDF, whole bronze rows given back to Spark", "bronze", _ours),
        Variant(
            "ours_projected",
            "the product for a table that keeps 3 of its columns (`drop_columns`)",
            "kept",
            _ours_projected,
            one_id_only=True,
        ),
        Variant(
            "from_avro",
            "Spark's own reader in the JVM, the frame cut off",
            "envelope",
            _from_avro,
            one_id_only=True,
        ),
        Variant(
            "identity", "mapInArrow that gives every batch back: the floor of Python", "bytes", _identity
        ),
        Variant("scan", "the source alone, no Python", "bytes", _scan),
    )
}

"""Who drains a topic: from the broker to a commit in Delta, in micro-batches of half a million records."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pyspark.sql import DataFrame, SparkSession

from bench.drain_source import TOPIC, Source  # type: ignore[import-not-found]
from bench.spark_variants import VARIANTS as DECODERS  # type: ignore[import-not-found]
from bench.streams import KEY_ID  # type: ignore[import-not-found]
from cdc_lakehouse.application.session import LazySession
from cdc_lakehouse.bronze.ingest import TableIngest
from cdc_lakehouse.bronze.plan import plan_drain
from cdc_lakehouse.bronze.source_settings import SOURCE_SETTINGS
from cdc_lakehouse.config.kafka_settings import java_kafka_settings, librdkafka_settings
from cdc_lakehouse.kafka.cluster import Cluster
from cdc_lakehouse.lake.ledger import Kind, Ledger
from cdc_lakehouse.registry.client import SchemaRegistry
from spark.chain import PIPELINE, Chain, table_of  # type: ignore[import-not-found]

MICRO_BATCH = 500_000
"""Offsets at a time: what the product takes unless a pipeline says otherwise."""


@dataclass(frozen=True, slots=True)
class Drain:
    does: str
    gives: str | None
    """How its rows are compared (`bench.comparing`); None when it writes none."""
    run: Callable[[SparkSession, Source, Path], Path]
    """Into a folder of its own; the place of the table."""


def _product(_session: SparkSession, source: Source, folder: Path) -> Path:
    """`TableIngest` as the job runs it, with a registry in memory."""
    table, chain = table_of("orders", TOPIC), Chain(LazySession("bench"), root=folder.as_uri())
    texts = source.stream.value_texts
    chain.registry.register(TOPIC, keys={KEY_ID: source.stream.key_text}, values=texts)
    with closing(Cluster(librdkafka_settings(source.connection))) as cluster:
        facts = cluster.facts({TOPIC})
    ledger = Ledger(kind=Kind.BRONZE, pipeline=PIPELINE, table="orders", cluster_id=facts.cluster_id)
    plan = plan_drain(ledger, (TOPIC,), facts=facts)
    registry = cast(SchemaRegistry, chain.registry)
    ingest = TableIngest(chain.application(table), table, plan=plan, registry=registry)
    ingest.run(kafka=java_kafka_settings(source.connection))
    table_folder: Path = folder / "bronze" / PIPELINE / "orders"
    return table_folder


def _usual(name: str) -> Callable[[SparkSession, Source, Path], Path]:
    """A stream whose batches are decoded by a variant of the part `udf` and appended by Spark."""

    def run(session: SparkSession, source: Source, folder: Path) -> Path:
        def append(batch: DataFrame, _number: int) -> None:
            rows = DECODERS[name].plan(source.stream, batch)
            rows.write.format("delta").mode("append").save(str(folder / "table"))

        _drain(session, source, append, checkpoint=folder / "checkpoint")
        return folder / "table"

    return run


def _discarded(name: str) -> Callable[[SparkSession, Source, Path], Path]:
    def run(session: SparkSession, source: Source, folder: Path) -> Path:
        def forget(batch: DataFrame, _number: int) -> None:
            DECODERS[name].plan(source.stream, batch).write.format("noop").mode("overwrite").save()

        _drain(session, source, forget, checkpoint=folder / "checkpoint")
        return folder

    return run


def _drain(
    session: SparkSession, source: Source, each: Callable[[DataFrame, int], None], *, checkpoint: Path
) -> None:
    settings = {**SOURCE_SETTINGS, **java_kafka_settings(source.connection)}
    records = (
        session.readStream.format("kafka")
        .options(**{f"kafka.{name}": value for name, value in settings.items()})
        .option("subscribe", TOPIC)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", MICRO_BATCH)
        .option("includeHeaders", "true")
        .load()
    )
    query = (
        records.writeStream.foreachBatch(each)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


VARIANTS = {
    "baseline": Drain(
        "the usual way: a pandas_udf that calls AvroDeserializer(schema_str=None) per record, appended by "
        "Spark",
        "envelope",
        _usual("baseline"),
    ),
    "ours": Drain("the product: `TableIngest.run`, ledger and all", "bronze", _product),
    "spark_writer": Drain(
        "the product's UDF, its rows given back to Spark and appended by it", "bronze", _usual("ours")
    ),
    "from_avro": Drain("Spark's own reader in the JVM, appended by Spark", "envelope", _usual("from_avro")),
    "identity": Drain(
        "mapInArrow that gives every batch back, nothing written: the floor", None, _discarded("identity")
    ),
}

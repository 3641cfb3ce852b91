"""What the jobs do, once and in small, so that the JVM loads what they need: Delta, Arrow, Kafka, streaming.

Runs by spark-submit; imports nothing of this package.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession

_KAFKA_CLASSES = (
    "org.apache.spark.sql.kafka010.KafkaSourceProvider",
    "org.apache.spark.sql.kafka010.KafkaMicroBatchStream",
    "org.apache.spark.sql.kafka010.KafkaBatchPartitionReader",
    "org.apache.spark.sql.kafka010.KafkaOffsetReaderAdmin",
    "org.apache.kafka.clients.consumer.KafkaConsumer",
    "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator",
    "org.apache.kafka.clients.consumer.internals.Fetcher",
)


def main(folder: str) -> None:
    session = SparkSession.builder.getOrCreate()
    _load_kafka(session)
    table, changes = f"{folder}/table", f"{folder}/changes"
    rows = session.range(100).selectExpr(
        "id", "cast(id AS string) AS name", "cast(id AS decimal(12,2)) AS total"
    )
    rows.write.format("delta").save(table)
    rows.mapInArrow(_same, rows.schema).write.format("delta").save(changes)
    query = session.readStream.format("delta").load(changes).writeStream
    query = query.foreachBatch(lambda batch, _: _merge(batch, table)).trigger(availableNow=True)
    query.option("checkpointLocation", f"{folder}/checkpoint").start().awaitTermination()
    session.read.format("delta").load(table).groupBy("name").count().collect()
    session.sql(f"DESCRIBE HISTORY delta.`{table}`").collect()
    session.stop()


def _same(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


def _merge(batch: DataFrame, table: str) -> None:
    batch.createOrReplaceTempView("changes")
    batch.sparkSession.sql(
        f"MERGE INTO delta.`{table}` t USING changes c ON t.id = c.id "
        "WHEN MATCHED AND c.id < 10 THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    batch.write.format("delta").mode("append").save(table)


def _load_kafka(session: SparkSession) -> None:
    """An admin client that never finds its broker loads most of the library."""
    java: Any = session.sparkContext._jvm
    for name in _KAFKA_CLASSES:
        java.java.lang.Class.forName(name)
    settings = java.java.util.HashMap()
    settings.put("bootstrap.servers", "127.0.0.1:1")
    java.org.apache.kafka.clients.admin.AdminClient.create(settings).close(java.java.time.Duration.ZERO)


if __name__ == "__main__":
    main(sys.argv[1])

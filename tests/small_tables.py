"""Settings of Spark for tables of a dozen rows: all else would cost more than the work that is tested."""

from __future__ import annotations

SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.default.parallelism": "1",
}

"""The ways in which a batch of bronze gets into a table: ours, and the one that everybody knows."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from bench.merge_lake import NAMES, MergeLake  # type: ignore[import-not-found]

Span = tuple[int, int]
"""Of the batch: [first offset, behind the last)."""
_DEFAULTS = {
    "spark.sql.shuffle.partitions": "200",
    "spark.databricks.delta.snapshotPartitions": "50",
}


def ours(lake: MergeLake, _span: Span) -> None:
    lake.merge()


def plain(lake: MergeLake, span: Span) -> None:
    """The newest event of each key by `row_number`, then MERGE, with what Spark and Delta do by default."""
    session: SparkSession = lake.engine.session().newSession()
    for name, value in {**_DEFAULTS, "spark.sql.session.timeZone": "UTC"}.items():
        session.conf.set(name, value)
    start, until = span
    session.sql(
        f"""
        SELECT op, key.id AS id, {", ".join(f"after.{name} AS {name}" for name in NAMES if name != "id")}
        FROM (SELECT *, row_number() OVER (PARTITION BY key ORDER BY position DESC) AS place
              FROM delta.`{lake.bronze}` WHERE offset >= {start} AND offset < {until})
        WHERE place = 1
        """
    ).createOrReplaceTempView("changes")
    values = ", ".join(f"s.{name}" for name in NAMES)
    session.sql(
        f"""
        MERGE INTO delta.`{lake.plain}` AS t USING changes AS s ON t.id = s.id
        WHEN MATCHED AND s.op = 'd' THEN DELETE
        WHEN MATCHED THEN UPDATE SET {", ".join(f"t.{name} = s.{name}" for name in NAMES)}
        WHEN NOT MATCHED AND s.op != 'd' THEN INSERT ({", ".join(NAMES)}) VALUES ({values})
        """
    ).collect()


VARIANTS: dict[str, Callable[[MergeLake, Span], None]] = {"ours": ours, "plain": plain}

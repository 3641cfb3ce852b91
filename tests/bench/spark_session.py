"""Spark with the product's settings, and rows that cost next to nothing to read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from artifacts.cache import fetched_folder
from artifacts.errors import NotFetchedError
from artifacts.spark_conf import write_spark_conf
from artifacts.spark_files import DEFAULTS_FILE
from bench.processes import TAG  # type: ignore[import-not-found]
from bench.streams import Stream, written  # type: ignore[import-not-found]

CORES = 2
BATCH = 10_000
"""Rows per Arrow batch."""
SETTINGS = {
    "spark.master": f"local[{CORES}]",
    "spark.driver.memory": "3g",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH),
    "spark.sql.execution.arrow.compression.codec": "none",
    "spark.python.worker.reuse": "true",
    # As the product has it (`bronze.batch_size`), for every variant.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    # The same (`application.session`): the floor of a drain shall not pay for what the product avoids.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # Otherwise the union of one table with itself has the partitions of one, each as long as all.
    "spark.sql.unionOutputPartitioning": "false",
    # What is verified is read back without Spark, which must then see instants.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


@dataclass(slots=True)
class Engine:
    session: SparkSession
    folder: Path
    records: Path
    """Where records are written once for all who read them."""
    _rows: dict[tuple[str, int, int], DataFrame] = field(default_factory=dict)

    @property
    def jvm(self) -> int:
        """Its process id; all Python workers are below it."""
        return int(self.session.sparkContext._jvm.java.lang.ProcessHandle.current().pid())

    def rows(self, stream: Stream, block: int, copies: int = 1) -> DataFrame:
        """`block` different records, `copies` times over, in memory as rows of Spark: one partition a core.

        A scan of them is a walk over a list, so the source is the same small share for every variant.
        """
        known = (stream.name, block, copies)
        if known not in self._rows:
            self._rows[known] = self._made(stream, block) if copies == 1 else self._copied(known, stream)
        return self._rows[known]

    def _made(self, stream: Stream, block: int) -> DataFrame:
        paths = written(stream, block, self.records, files=CORES)
        parts = [self.session.read.parquet(str(path)).coalesce(1).localCheckpoint() for path in paths]
        return reduce(DataFrame.unionAll, parts).localCheckpoint()

    def _copied(self, known: tuple[str, int, int], stream: Stream) -> DataFrame:
        _, block, copies = known
        one = self.rows(stream, block)
        return reduce(DataFrame.unionAll, [one] * copies).coalesce(CORES).localCheckpoint()

    def tagged(self, tag: str) -> None:
        """Functions that are built from now on run in workers of their own, which carry the tag."""
        self.session.sparkContext.environment[TAG] = tag


@contextmanager
def engine(folder: Path, *, records: Path) -> Iterator[Engine]:
    """What it writes is in `folder`, but for the records."""
    jars = spark_avro_jars()
    conf = write_spark_conf(folder / "conf", quick_start=False)
    defaults = conf / DEFAULTS_FILE
    defaults.write_text(_with_jars(defaults.read_text(encoding="utf-8"), jars), encoding="utf-8")
    os.environ |= {
        "SPARK_CONF_DIR": str(conf),
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "PYSPARK_PYTHON": sys.executable,
    }
    session = SparkSession.builder.appName("bench").getOrCreate()
    try:
        yield Engine(session, folder, records)
    finally:
        session.stop()


def spark_avro_jars() -> list[Path]:
    """None when Spark's own Avro reader was not fetched."""
    try:
        return sorted(fetched_folder("spark-bench").glob("*.jar"))
    except NotFetchedError:
        return []


def _with_jars(defaults: str, jars: list[Path]) -> str:
    """The last line of a name counts; the jars go behind the class path that is there."""
    lines = []
    for line in defaults.splitlines():
        name, _, value = line.partition(" ")
        paths = ":".join([value, *map(str, jars)])
        lines.append(f"{name} {paths}" if name == "spark.driver.extraClassPath" else line)
    lines += [f"{name} {value}" for name, value in SETTINGS.items()]
    return "\n".join(lines) + "\n"

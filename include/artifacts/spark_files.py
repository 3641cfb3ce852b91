"""The Spark settings everybody uses, and the two files that carry them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from artifacts.cache import fetched_folder
from artifacts.log_store import installed_log_store

SENSITIVE = (
    "secret|passw|token|access[.]?key|credential|jaas|user[.]?info"
    "|keystore|bearer|authorization|api[._-]?key|://[^/]*@"
)
LOG_STORES = {
    "spark.delta.logStore.file.impl": "cdclakehouse.ExclusiveLinkLogStore",
    "spark.delta.logStore.s3a.impl": "cdclakehouse.ConditionalPutLogStore",
}
"""Where Delta's own would let two drivers win the same version (decision 0013)."""
DEFAULTS_FILE = "spark-defaults.conf"
LOGGING_FILE = "log4j2.properties"
_CUT = r"{[\r\n][\s\S]*}{}"
_QUOTES = r"{((Exception|Error): [^'\"]*|\[[A-Z][A-Z0-9_.]+\] [^'\"]*)['\"].*}{$1...}"
LOG_PATTERN = (
    "%d{yyyy-MM-dd'T'HH:mm:ss.SSS'Z'}{UTC} %p %c{1}: "
    f"%replace{{%replace{{%m}}{_CUT} %replace{{%ex{{short}}}}{_CUT}}}{_QUOTES}%n%ex{{none}}"
)
"""One line for an event, with what was thrown and without its frames: each task of a failed query throws the
same, and the driver tells it once more. What stands behind a quotation mark may be a value of the payload."""
_QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m")
"""C1 only: half the start-up, but twice the CPU of a drain over a million rows.

With C1 alone the JVM reserves 48 MB for code instead of 240. A driver of many tables fills that, and then
methods that are new to it fail with an InternalError. What is reserved costs nothing until it is used.
"""
QUICK_START_SETTING = "spark.driver.defaultJavaOptions"
_TRUSTING_ARROW = ("-Darrow.enable_unsafe_memory_access=true", "-Darrow.enable_null_check_for_get=false")
"""Arrow's Java side checks the bounds of a batch at every value that Spark reads from it. Our own workers
make these batches, and the tests validate them whole, so nothing is gained by asking again."""


_DIRECT_MEMORY = "-XX:MaxDirectMemorySize=512m"
"""Where batches for Python grow. A batch of very wide records fails here, and is sent again in small ones."""


def spark_class_path() -> tuple[Path, ...]:
    """The seven jars that Spark needs beside its own, in a fixed order; raises when they are not fetched."""
    return (*sorted(fetched_folder("spark").glob("*.jar")), installed_log_store())


def object_store_class_path() -> tuple[Path, ...]:
    """What a lake on s3a needs beside them. At the end: the class archive knows only what stands before."""
    return tuple(sorted(fetched_folder("spark-s3").glob("*.jar")))


def spark_settings(
    *,
    driver_class_path: Sequence[Path],
    executor_class_path: Sequence[Path],
    flags: Sequence[str],
    warehouse: Path,
    quick_start: bool = True,
) -> dict[str, str]:
    """Name -> value, for a driver on this machine; a job adds what only it knows.

    The flags of `quick_start` have a setting to themselves, so that a job can be submitted without them.
    """
    return {
        **({QUICK_START_SETTING: " ".join(_QUICK_START)} if quick_start else {}),
        "spark.master": "local[2]",
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraClassPath": ":".join(map(str, driver_class_path)),
        "spark.executor.extraClassPath": ":".join(map(str, executor_class_path)),
        "spark.driver.extraJavaOptions": " ".join(flags),
        "spark.executor.extraJavaOptions": " ".join((*_TRUSTING_ARROW, _DIRECT_MEMORY)),
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
        # Batches to and from the workers by a socket of the file system, which is a tenth less work than TCP,
        # and which other users of the machine cannot open.
        "spark.python.unix.domain.socket.enabled": "true",
        # An error is fatal when a task ends with it, not when Arrow names it as the reason of a full batch.
        "spark.executor.killOnFatalError.depth": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.redaction.regex": f"(?i){SENSITIVE}",
        "spark.sql.redaction.options.regex": f"(?i){SENSITIVE}|url",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation": "in-memory",
        **LOG_STORES,
        "spark.sql.warehouse.dir": warehouse.as_uri(),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",
    }


def driver_flags(*, logging_file: Path, archive: Path | None) -> tuple[str, ...]:
    """An archive that does not fit is left aside by the JVM; its warnings would stand in every task's log."""
    return (
        "-XX:+UseSerialGC",
        "-Xshare:auto",
        "-Xlog:cds=off",
        "-Xlog:cds+dynamic=off",
        *((f"-XX:SharedArchiveFile={archive}",) if archive else ()),
        *_TRUSTING_ARROW,
        _DIRECT_MEMORY,
        "-Djava.awt.headless=true",
        "-Djava.net.preferIPv4Stack=true",
        "-Dfile.encoding=UTF-8",
        "-Duser.timezone=UTC",
        f"-Dlog4j2.configurationFile={logging_file.as_uri()}",
    )


def render_defaults(settings: dict[str, str]) -> str:
    return "".join(f"{name} {value}\n" for name, value in settings.items())


def render_logging() -> str:
    """Warnings and worse on stderr; a job's own lines come from Python."""
    loggers = {
        "native": ("org.apache.hadoop.util.NativeCodeLoader", "error"),
        "loopback": ("org.apache.spark.util.Utils", "error"),
        "plans": ("org.apache.spark.util.SparkStringUtils", "error"),
        "streams": ("org.apache.spark.sql.execution.streaming.runtime.ResolveWriteToStream", "error"),
        "mergesource": ("org.apache.spark.rdd.MapPartitionsRDD", "error"),
        "kafkaconfig": ("org.apache.kafka.clients.admin.AdminClientConfig", "error"),
        "consumerconfig": ("org.apache.kafka.clients.consumer.ConsumerConfig", "error"),
        "consumerpool": ("org.apache.spark.sql.kafka010.consumer.InternalKafkaConsumerPool", "error"),
    }
    lines = [
        "rootLogger.level = warn",
        "rootLogger.appenderRef.stderr.ref = stderr",
        "appender.console.type = Console",
        "appender.console.name = stderr",
        "appender.console.target = SYSTEM_ERR",
        "appender.console.layout.type = PatternLayout",
        # In a file of properties a backslash escapes.
        "appender.console.layout.pattern = " + LOG_PATTERN.replace("\\", "\\\\"),
    ]
    for key, (name, level) in loggers.items():
        lines += [f"logger.{key}.name = {name}", f"logger.{key}.level = {level}"]
    return "\n".join(lines) + "\n"

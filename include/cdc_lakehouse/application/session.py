"""The one Spark session of an application: made when the first table has work, not before."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

from cdc_lakehouse.application.log_stores import LOG_STORES, require_log_store
from cdc_lakehouse.application.package_zip import write_package_zip
from cdc_lakehouse.config.storage_settings import StorageSettings, s3a_settings
from cdc_lakehouse.contract import ENV_SPARK_SECRET
from cdc_lakehouse.lake.put_if_absent import require_put_if_absent

logger = logging.getLogger(__name__)

_SETTINGS = {
    # A TIMESTAMP is an instant; no zone of a machine may bend it on the way.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # Spark's usual class starts a process (`readlink`) for each look at a local file, six per file written;
    # Delta uses it too, beside its log.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # The checkpoint of a drain is read within seconds by who wrote it, and never again.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # A damaged page is an error, not a row that is missing. Files of releases before have no sums.
    "parquet.page.write-checksum.enabled": "true",
    "parquet.page.verify-checksum.enabled": "true",
    # Delta refuses a version that is older than VACUUM's retention, by its age alone. Of a table that stood
    # still all files of that version are there; where one is gone, reading it fails.
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
}
_SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
}


_BUFFERS = "${env.SPARK_EXECUTOR_DIRS:-${env.LOCAL_DIRS:-%s}}/s3a"
"""The folder in which S3A keeps a file until it is uploaded: in an executor beside its shuffle files, which
no other user may read. Hadoop's own place is open to everybody on the machine."""
TEMPORARY_OF_A_PROCESS = "cdc_lakehouse_"
"""Beginning of the name of a folder that lives as long as its process."""
_LONGEST_SOCKET_FOLDER = 60
"""Spark adds a name of 42 characters, and the path of a socket may have 103."""


class LazySession:
    """`session()` starts Spark once; `seconds` says what the start cost.

    With `storage` it starts only where commits are safe: on a store that refuses a second create, with
    the classes that ask for it. `before_start` may refuse by raising.
    """

    def __init__(
        self,
        name: str,
        *,
        storage: StorageSettings | None = None,
        before_start: Callable[[], None] | None = None,
    ) -> None:
        self._name = name
        self._storage = storage
        self._before_start = before_start
        self._session: SparkSession | None = None
        self._folder: TemporaryDirectory[str] | None = None
        self._lock = Lock()
        self.seconds = 0.0

    def session(self) -> SparkSession:
        with self._lock:
            if self._session is None:
                started = time.monotonic()
                self._session = _with(self._started(), _SETTINGS)
                self.seconds = time.monotonic() - started
                logger.info("session started", extra={"seconds": round(self.seconds, 2)})
            return self._session

    def _started(self) -> SparkSession:
        if self._storage is not None:
            require_put_if_absent(self._storage)
        _silence_what_is_raised()
        if self._before_start is not None:
            self._before_start()
        # mkdtemp lets nobody else in, whatever the files inside allow.
        self._folder = TemporaryDirectory(prefix=TEMPORARY_OF_A_PROCESS, ignore_cleanup_errors=True)
        session = _builder(self._name, self._storage, folder=self._folder.name).getOrCreate()
        _close_block_folders(session)
        if self._storage is not None:
            require_log_store(session, root=self._storage.root)
        if not session.sparkContext.master.startswith("local"):
            session.sparkContext.addPyFile(str(write_package_zip(Path(self._folder.name))))
            if session.sparkContext.getConf().get("spark.authenticate", "false") != "true":
                logger.warning("the cluster asks no secret: anybody who reaches its ports can read rows")
        return session

    def isolated(self, *, small: bool = False) -> SparkSession:
        """A session with settings of its own on the same engine: one per table.

        `small` is for work of some thousand rows, which is done before generated code is compiled.
        """
        session = _with(self.session().newSession(), _SETTINGS)
        return _with(session, _SMALL) if small else session

    def stop(self) -> None:
        """Never raises: an engine that died must not take the result of the run with it."""
        session, self._session = self._session, None
        if session is None:
            return
        try:
            session.stop()
        except Exception:
            logger.warning("session did not stop", exc_info=True)
        if self._folder is not None:
            self._folder.cleanup()


def private_settings(*, master: str, folder: str, secret: str | None) -> dict[str, str]:
    """Settings by which nobody else on the machines talks to the engine or reads what it puts aside.

    In local mode Spark draws a secret for each run. A standalone cluster has one of its own; on YARN and
    Kubernetes the cluster's settings stay as they are.
    """
    settings = {"spark.hadoop.fs.s3a.buffer.dir": _BUFFERS % folder}
    if master == "local" or master.startswith("local["):
        settings["spark.authenticate"] = "true"
        if len(folder) <= _LONGEST_SOCKET_FOLDER:
            settings["spark.python.unix.domain.socket.dir"] = folder
    elif secret and master.startswith("spark://"):
        settings |= {
            "spark.authenticate": "true",
            "spark.authenticate.secret": secret,
            "spark.network.crypto.enabled": "true",
        }
    return settings


def _close_block_folders(session: SparkSession) -> None:
    """Let nobody else into the driver's folders of shuffle files and blocks, which are empty at this moment.

    Where a cluster starts executors it makes theirs private itself; in local mode nobody does.
    """
    java: Any = session.sparkContext._jvm
    for folder in java.org.apache.spark.SparkEnv.get().blockManager().diskBlockManager().localDirs():
        Path(folder.getPath()).chmod(0o700)


def _silence_what_is_raised() -> None:
    """PySpark and py4j write what they raise to standard error too: whole stacks, with values in them."""
    from pyspark.logger import PySparkLogger

    logging.getLogger("py4j").setLevel(logging.CRITICAL)

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def _builder(name: str, storage: StorageSettings | None, *, folder: str) -> SparkSession.Builder:
    from pyspark import SparkConf, SparkContext  # a run that finds nothing to do does not pay for it
    from pyspark.sql import SparkSession

    # With a JVM that runs already, settings reach it by a socket. One that is started for them gets them as
    # arguments, which every user of the machine can read.
    SparkContext._ensure_initialized()
    master = SparkConf().get("spark.master", "")
    private = private_settings(master=master or "", folder=folder, secret=os.environ.get(ENV_SPARK_SECRET))
    s3a = {} if storage is None or storage.s3 is None else s3a_settings(storage.s3)
    builder = SparkSession.builder.appName(name)
    for key, value in {**LOG_STORES, **s3a, **private}.items():
        builder = builder.config(key, value)
    return builder


def _with(session: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    for key, value in settings.items():
        session.conf.set(key, value)
    return session

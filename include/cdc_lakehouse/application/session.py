"""The one Spark session of an application: made when the first table has work, not before."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_SETTINGS = {
    # A TIMESTAMP is an instant; no zone of a machine may bend it on the way.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}
_SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
}


class LazySession:
    """`session()` starts Spark once; `seconds` says what the start cost."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._session: SparkSession | None = None
        self._lock = Lock()
        self.seconds = 0.0

    def session(self) -> SparkSession:
        from pyspark.sql import SparkSession  # a run that finds nothing to do does not pay for it

        with self._lock:
            if self._session is None:
                started = time.monotonic()
                self._session = _with(SparkSession.builder.appName(self._name).getOrCreate(), _SETTINGS)
                self.seconds = time.monotonic() - started
                logger.info("session started", extra={"seconds": round(self.seconds, 2)})
            return self._session

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


def _with(session: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    for key, value in settings.items():
        session.conf.set(key, value)
    return session

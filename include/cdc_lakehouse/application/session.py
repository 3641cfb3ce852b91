"""The one Spark session of an application: made when the first table has work, not before."""

from __future__ import annotations

import logging
import time

from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_SETTINGS = {
    # A TIMESTAMP is an instant; no zone of a machine may bend it on the way.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}


class LazySession:
    """`session()` starts Spark once; `seconds` says what the start cost."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._session: SparkSession | None = None
        self.seconds = 0.0

    def session(self) -> SparkSession:
        if self._session is None:
            started = time.monotonic()
            self._session = _configured(SparkSession.builder.appName(self._name).getOrCreate())
            self.seconds = time.monotonic() - started
            logger.info("session started", extra={"seconds": round(self.seconds, 2)})
        return self._session

    def isolated(self) -> SparkSession:
        """A session with settings of its own on the same engine: one per table that is merged."""
        return _configured(self.session().newSession())

    def stop(self) -> None:
        if self._session is not None:
            self._session.stop()
            self._session = None


def _configured(session: SparkSession) -> SparkSession:
    for key, value in _SETTINGS.items():
        session.conf.set(key, value)
    return session

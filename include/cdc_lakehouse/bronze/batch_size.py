"""How much of a micro-batch goes to a Python worker at once (decision 0011).

Ten thousand rows, as Spark counts them for nothing. Limiting bytes too makes Spark add up the batch after
every row, for a sixth of the whole cost, so that begins where records turn out to be wide: the JVM's
direct memory, where batches grow, is limited, and a batch that outgrows it fails cleanly.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

_SETTING = "spark.sql.execution.arrow.maxBytesPerBatch"
_NO_LIMIT = str(2**31 - 1)
"""The one value with which Spark does not add up."""
_WIDE = "32m"
_OUTGREW = ("Failure allocating buffer", "OversizedAllocationException", "OutOfDirectMemoryError")


def limit(session: SparkSession, *, by_bytes: bool) -> None:
    """For queries that are planned from now on."""
    session.conf.set(_SETTING, _WIDE if by_bytes else _NO_LIMIT)


def outgrew(text: str) -> bool:
    """Whether a query failed because a batch had no room."""
    return any(each in text for each in _OUTGREW)

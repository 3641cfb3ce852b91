"""Failures of a worker that are none of the records': their texts survive the trip through the JVM."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from cdc_lakehouse.bronze.worker_versions import mismatch_in
from cdc_lakehouse.errors import (
    KafkaMovedError,
    LakehouseError,
    MissingConnectionError,
    StorageUnavailableError,
)
from cdc_lakehouse.kafka.records import UnreadRecordsError

_STORAGE = re.compile(r"worker-storage\[([^\]\n]*)\]")
_KAFKA = re.compile(r"worker-kafka\[([^\]\n]*)\]")
_CONNECTION = re.compile(r"worker-connection\[([^;\]\n]*);([^\]\n]*)\]")


class WorkerStorageError(Exception):
    """Raised in a worker whose file could not be written, or that does not know how to reach the store."""


@contextmanager
def telling_storage() -> Iterator[None]:
    """What the store says, as the driver will recognise it."""
    try:
        yield
    except MissingConnectionError as exc:
        problem = exc.problem.replace("]", ")")
        raise WorkerStorageError(f"worker-connection[{exc.connection};{problem}]") from exc
    except OSError as exc:
        raise WorkerStorageError(f"worker-storage[{_one_line(exc)}]") from exc


class WorkerKafkaError(Exception):
    """Raised in a worker that could not read what it was to read."""


@contextmanager
def telling_kafka() -> Iterator[None]:
    """Why records were not read, as the driver will recognise it."""
    try:
        yield
    except UnreadRecordsError as exc:
        raise WorkerKafkaError(f"worker-kafka[{_one_line(exc)}]") from exc


def known_failure(text: str, *, root: str, table: str) -> LakehouseError | None:
    """The error that a worker's failure means, read back from its text."""
    if (found := _STORAGE.search(text)) is not None:
        return StorageUnavailableError(root=root, reason=found.group(1))
    if (found := _KAFKA.search(text)) is not None:
        return KafkaMovedError(table=table, what=found.group(1))
    if (found := _CONNECTION.search(text)) is not None:
        return MissingConnectionError(connection=found.group(1), problem=f"in an executor, {found.group(2)}")
    return mismatch_in(text)


def _one_line(exc: Exception) -> str:
    return str(exc).splitlines()[0].replace("]", ")") if str(exc) else type(exc).__name__

"""Failures of a worker that are none of the records': their texts survive the trip through the JVM."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from cdc_lakehouse.bronze.worker_versions import mismatch_in
from cdc_lakehouse.errors import LakehouseError, StorageUnavailableError

_MARKER = re.compile(r"worker-storage\[([^\]\n]*)\]")


class WorkerStorageError(Exception):
    """Raised in a worker whose file could not be written."""


@contextmanager
def telling_storage() -> Iterator[None]:
    """What the store says, as the driver will recognise it."""
    try:
        yield
    except OSError as exc:
        reason = str(exc).splitlines()[0].replace("]", ")") if str(exc) else type(exc).__name__
        raise WorkerStorageError(f"worker-storage[{reason}]") from exc


def known_failure(text: str, *, root: str) -> LakehouseError | None:
    """The error that a worker's failure means, read back from its text."""
    found = _MARKER.search(text)
    if found is not None:
        return StorageUnavailableError(root=root, reason=found.group(1))
    return mismatch_in(text)

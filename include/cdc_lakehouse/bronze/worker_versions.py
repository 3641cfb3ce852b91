"""Refuse workers whose packages differ from the driver's: they might decode another way."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import version

from cdc_lakehouse import __version__
from cdc_lakehouse.errors import VersionMismatchError

_MARKER = re.compile(r"worker-version\[([^;\]]+);worker=([^;\]]+);driver=([^;\]]+)\]")


class WorkerVersionError(Exception):
    """Raised in a worker; its text survives the trip through the JVM to the driver."""


def installed() -> dict[str, str]:
    """What decides how a record is decoded, where this is called."""
    packages = ("fastavro", "numpy", "pyarrow")
    return {**{name: version(name) for name in packages}, "cdc_lakehouse": __version__}


def refuse_other_versions(driver: Mapping[str, str], *, worker: Mapping[str, str]) -> None:
    for package, wanted in driver.items():
        if worker[package] != wanted:
            raise WorkerVersionError(f"worker-version[{package};worker={worker[package]};driver={wanted}]")


def mismatch_in(text: str) -> VersionMismatchError | None:
    """The error that a worker's refusal means, read back from a failure's text."""
    found = _MARKER.search(text)
    if found is None:
        return None
    package, worker, driver = found.groups()
    return VersionMismatchError(package=package, worker=worker, driver=driver)

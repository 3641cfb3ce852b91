"""The moment that a table goes back to, and the version of ours that it had then."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Self

from cdc_lakehouse.contract import Job
from cdc_lakehouse.errors import RepairRefusedError, StorageUnavailableError
from cdc_lakehouse.lake.instants import parse_moment
from cdc_lakehouse.lake.versions import OwnVersion, missing_files, own_versions

LAYER, TO_VERSION, TO_TIME = "layer", "to_version", "to_time"
"""Names of the options of a rewind."""

Problem = Callable[[OwnVersion], str | None]
"""Says why a table cannot go back to a version; None where it can."""


class Layer(StrEnum):
    SILVER = "silver"
    BRONZE = "bronze"


@dataclass(frozen=True, slots=True)
class Moment:
    """A version, or a time: exactly one of the two."""

    layer: Layer
    version: int | None = None
    time: datetime | None = None

    @classmethod
    def asked_for(cls, options: Mapping[str, str], *, table: str, timezone: str) -> Self:
        """Return what the options of a rewind say. Raise `RepairRefusedError` for what is no moment."""
        layer, version, time = (options.get(name, "").strip() for name in (LAYER, TO_VERSION, TO_TIME))
        if layer not in ("", *Layer):
            raise _refused(table, f"the layer is `silver` or `bronze`, not {layer!r}")
        if bool(version) == bool(time):
            raise _refused(table, f"say where it goes back to: `{TO_VERSION}` or `{TO_TIME}`, one of them")
        chosen = Layer(layer or Layer.SILVER)
        if version:
            if not version.isdecimal():
                raise _refused(table, f"{version!r} is no version of a Delta table, which is a number")
            return cls(chosen, version=int(version))
        try:
            return cls(chosen, time=parse_moment(time, timezone=timezone))
        except ValueError as exc:
            raise _refused(table, str(exc)) from None

    def to_options(self) -> dict[str, str]:
        """Return the options as a plan shows them."""
        where = {TO_VERSION: str(self.version)} if self.time is None else {TO_TIME: self.time.isoformat()}
        return {LAYER: self.layer.value, **where}

    def choose(self, versions: Sequence[OwnVersion]) -> OwnVersion | None:
        """Return the newest of `versions` at or before the moment; they are in order, newest first."""
        return next((each for each in versions if self._is_at_or_behind(each)), None)

    def _is_at_or_behind(self, version: OwnVersion) -> bool:
        if self.time is not None:
            return version.committed_at <= self.time
        return self.version is not None and version.version <= self.version

    def __str__(self) -> str:
        return f"version {self.version}" if self.time is None else self.time.isoformat()


def find_version(uri: str, moment: Moment, *, table: str, newest: int, problem_of: Problem) -> OwnVersion:
    """Return the version of ours that the table had then. `newest` is its newest version.

    Raise `RepairRefusedError`, which names the oldest version that is possible, for one that is gone.
    """
    if moment.version is not None and moment.version > newest:
        raise _refused(table, f"{moment.layer} has no version {moment.version}; its newest is {newest}")
    versions = own_versions(uri, table=table)
    chosen = moment.choose(versions)
    problem = (
        f"its log has no commit of ours at {moment}, or before" if chosen is None else problem_of(chosen)
    )
    if chosen is None or problem is not None:
        oldest = next((each for each in reversed(versions) if problem_of(each) is None), None)
        way_out = "no version is possible: rebuild it"
        if oldest is not None:
            time = oldest.committed_at.isoformat(timespec="seconds")
            way_out = f"the oldest that is possible is version {oldest.version}, of {time}"
        raise _refused(table, f"{problem}; {way_out}")
    return chosen


def problem_of_files(uri: str, version: int) -> str | None:
    """Say which files of a version are gone; None where all are there."""
    try:
        missing = missing_files(uri, version)
    except StorageUnavailableError as exc:
        return f"version {version} cannot be read ({exc.reason})"
    if not missing:
        return None
    return f"VACUUM has taken {len(missing)} file(s) of version {version}, first {missing[0]}"


def _refused(table: str, problem: str) -> RepairRefusedError:
    return RepairRefusedError(operation=Job.REWIND, table=table, problem=problem)

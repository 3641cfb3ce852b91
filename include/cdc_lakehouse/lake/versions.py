"""Versions of a table that commits of ours made: which there are, and whether their files are still there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyarrow.fs import FileSelector, FileType

from cdc_lakehouse.errors import StorageUnavailableError
from cdc_lakehouse.lake.filesystem import delta_options, filesystem_of
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.snapshot import files_at


@dataclass(frozen=True, slots=True)
class OwnVersion:
    """A version whose commit states a ledger."""

    version: int
    committed_at: datetime
    ledger: Ledger


def own_versions(uri: str, *, table: str) -> tuple[OwnVersion, ...]:
    """Return the versions of ours that the log still has, newest first."""
    try:
        commits = DeltaTable(uri, storage_options=delta_options(uri)).history()
    except (DeltaError, OSError) as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc
    versions = []
    for commit in commits:
        ledger = Ledger.from_json(commit.get("userMetadata") or "", table=table)
        if ledger is not None:
            committed_at = datetime.fromtimestamp(commit["timestamp"] / 1000, UTC)
            versions.append(OwnVersion(int(commit["version"]), committed_at, ledger))
    return tuple(versions)


def missing_files(uri: str, version: int) -> tuple[str, ...]:
    """Return the data files and deletion vectors of a version that are gone, or have another size."""
    filesystem, folder = filesystem_of(uri)
    needed: dict[str, int | None] = {}
    for file in files_at(uri, version):
        needed[file.path] = file.size
        vector = None if file.deleted is None else file.deleted.path
        if vector is not None:
            needed[vector] = None
    try:
        selector = FileSelector(folder, recursive=any("/" in path for path in needed))
        infos = filesystem.get_file_info(selector)
    except OSError as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc
    sizes = {info.path.removeprefix(f"{folder}/"): info.size for info in infos if info.type is FileType.File}
    return tuple(
        sorted(
            path
            for path, size in needed.items()
            if path not in sizes or (size is not None and sizes[path] != size)
        )
    )

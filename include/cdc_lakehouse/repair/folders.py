"""Folders of a table's Delta tables: which there are, and how one is moved or deleted as a whole.

No reader may take a part of a table for all of it. On a disk a folder is renamed. One that is deleted loses
its log first, from the beginning: a log without its first commits and without checkpoints is no table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyarrow.fs import FileSelector, FileType

from cdc_lakehouse.errors import StorageUnavailableError
from cdc_lakehouse.lake import files
from cdc_lakehouse.lake.filesystem import delta_options, filesystem_of
from cdc_lakehouse.lake.names import Lake

_LOG = "_delta_log"
_COMMIT = re.compile(r"\d{20}\.json")

Standing = tuple[str, int]
"""Delta's id of a table, and its newest version."""


@dataclass(frozen=True, slots=True)
class Folder:
    """One Delta table of a table of the pipeline."""

    name: str
    uri: str


def folders_of(lake: Lake, table: str) -> tuple[Folder, ...]:
    """Return the folders that a table may have, those that readers open first, bronze last.

    Bronze is the last to go: silver can be computed from it, and nothing else brings it back.
    """
    return (
        Folder("silver", lake.silver(table)),
        Folder("history", lake.history(table)),
        Folder("tombstones", lake.tombstones(table)),
        Folder("bronze", lake.bronze(table)),
    )


def is_folder(uri: str) -> bool:
    """Return whether there is a folder with anything in it, be it a table or what is left of one."""
    filesystem, path = filesystem_of(uri)
    try:
        return bool(filesystem.get_file_info(FileSelector(path, allow_not_found=True)))
    except OSError as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc


def standing_in(uri: str) -> Standing | None:
    """Return which table a folder holds, at which version; None where its log cannot be read."""
    try:
        table = DeltaTable(uri, storage_options=delta_options(uri))
        return str(table.metadata().id), table.version()
    except (TableNotFoundError, DeltaError):
        return None
    except OSError as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc


def size_of(uri: str) -> int:
    """Return the bytes of all files below a folder, those of older versions included."""
    filesystem, path = filesystem_of(uri)
    try:
        infos = filesystem.get_file_info(FileSelector(path, recursive=True, allow_not_found=True))
    except OSError as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc
    return sum(info.size or 0 for info in infos if info.type is FileType.File)


def move_folder(source: str, target: str) -> None:
    """Rename a folder of a disk. Raise `StorageUnavailableError` where the target is there already."""
    filesystem, path = filesystem_of(source)
    _, new_path = filesystem_of(target)
    try:
        filesystem.create_dir(new_path.rpartition("/")[0], recursive=True)
        filesystem.move(path, new_path)
    except OSError as exc:
        raise StorageUnavailableError(root=target, reason=str(exc)) from exc


def has_first_commit(uri: str) -> bool:
    """Return whether the log of a table has its first commit, which `delete_table` deletes first."""
    return files.read_text_if_there(f"{uri}/{_LOG}/{0:020d}.json") is not None


def delete_table(uri: str) -> None:
    """Delete a Delta table with all its versions. A second call deletes what a killed one has left."""
    parent, _, name = uri.rpartition("/")
    if not is_folder(uri):
        return
    logs = files.listed_files(f"{uri}/{_LOG}")
    # Without checkpoints the log counts from its first commit, so that one is the first commit to go.
    commits = [file for file in logs if _COMMIT.fullmatch(file.name)]
    for file in (*(file for file in logs if file not in commits), *commits):
        files.delete_file(file.uri)
    files.delete_child(parent, name)

"""Small files beside the tables, on whatever store the lake's root names."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime

from pyarrow.fs import FileSelector, FileSystem, FileType

from cdc_lakehouse.errors import StorageUnavailableError
from cdc_lakehouse.lake.filesystem import filesystem_of, is_object_store, sync_file


@dataclass(frozen=True, slots=True)
class Folder:
    uri: str
    name: str
    modified: datetime | None


@dataclass(frozen=True, slots=True)
class ListedFile:
    uri: str
    name: str
    modified: datetime


def write_text(uri: str, text: str, *, durably: bool = False) -> None:
    """Replace the file as a whole, so that no reader sees half of it and no other writer's half.

    One that is written `durably` is on the disk before it takes its name: a loss of power leaves the whole
    file or the one before.
    """
    filesystem, path = filesystem_of(uri)
    try:
        if is_object_store(uri):
            _write(filesystem, path, text)  # it appears when the stream is closed
            return
        folder = path.rpartition("/")[0]
        scratch = f"{folder}/.{secrets.token_hex(8)}.part"
        filesystem.create_dir(folder, recursive=True)
        _write(filesystem, scratch, text)
        if durably:
            sync_file(filesystem, scratch)
        filesystem.move(scratch, path)
    except OSError as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc


def _write(filesystem: FileSystem, path: str, text: str) -> None:
    with filesystem.open_output_stream(path) as stream:
        stream.write(text.encode())


def read_text(uri: str) -> str:
    filesystem, path = filesystem_of(uri)
    try:
        with filesystem.open_input_stream(path) as stream:
            return bytes(stream.read()).decode()
    except OSError as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc


def read_text_if_there(uri: str) -> str | None:
    """None when there is no such file (yet)."""
    filesystem, path = filesystem_of(uri)
    try:
        found = filesystem.get_file_info(path)
    except OSError as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc
    return None if found.type is FileType.NotFound else read_text(uri)


def folders(uri: str) -> list[Folder]:
    """Direct children that are folders, by name; none when `uri` does not exist."""
    filesystem, path = filesystem_of(uri)
    try:
        found = filesystem.get_file_info(FileSelector(path, allow_not_found=True))
    except OSError as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc
    return [
        Folder(uri=f"{uri}/{info.base_name}", name=info.base_name, modified=info.mtime)
        for info in sorted(found, key=lambda info: info.base_name)
        if info.type is FileType.Directory
    ]


def listed_files(uri: str) -> list[ListedFile]:
    """Return the files directly below `uri`, by name; none when it does not exist.

    Where a store does not say when a file was changed, it is taken for new.
    """
    filesystem, path = filesystem_of(uri)
    try:
        infos = filesystem.get_file_info(FileSelector(path, allow_not_found=True))
    except OSError as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc
    return [
        ListedFile(f"{uri}/{info.base_name}", info.base_name, info.mtime or datetime.now(UTC))
        for info in sorted(infos, key=lambda info: info.base_name)
        if info.type is FileType.File
    ]


def delete_file(uri: str) -> None:
    """Delete one file. A second call, or another process that was faster, changes nothing."""
    filesystem, path = filesystem_of(uri)
    try:
        filesystem.delete_file(path)
    except FileNotFoundError:
        return
    except OSError as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc


def delete_child(parent: str, name: str) -> None:
    """Delete one folder directly below `parent`; refuses anything that is not its strict child."""
    if not name or "/" in name or name in (".", ".."):
        raise ValueError(f"{name!r} is not a child of {parent}")
    filesystem, path = filesystem_of(f"{parent}/{name}")
    try:
        filesystem.delete_dir(path)
    except OSError as exc:
        raise StorageUnavailableError(root=f"{parent}/{name}", reason=str(exc)) from exc

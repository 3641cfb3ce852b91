"""Damage that a loss of power does to a table: torn commits, checksums of lost commits, missing data files.

A table returns to the version before a torn newest commit, as if the process had died before it: bronze reads
those records again, silver applies them again, and a history that lacks a step of silver is cut again from
all of bronze. Tombstones do not tell of which step they lack the deletes: they are made again as a whole.
Everything else is an error that names the damage.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyarrow.fs import FileSelector, FileSystem, FileType

from cdc_lakehouse.errors import DataFilesGoneError, LogDamagedError, LogTornError, StorageUnavailableError
from cdc_lakehouse.lake.filesystem import delta_options, filesystem_of, is_object_store
from cdc_lakehouse.lake.names import Lake

logger = logging.getLogger(__name__)

TORN = "_torn"
"""The folder of a table to which torn pieces of its log are moved. VACUUM leaves it alone."""
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKSUM = re.compile(r"(\d{20})\.crc")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..+")
_SINGLE = re.compile(r"(\d{20})\.checkpoint\.parquet")
_POINTER = "_last_checkpoint"
_ASIDE = "_delta_log."
"""Beginning of the name of a log that was moved to `TORN` as a whole."""
_MAGIC = b"PAR1"
_FEW = 3
_MOST_VERSIONS = 20
"""Older versions that are checked for one whose files are all there."""


@dataclass(frozen=True, slots=True)
class LogListing:
    """Names and sizes of the files in a log folder, and the versions that they show."""

    sizes: Mapping[str, int]

    @property
    def commits(self) -> dict[int, str]:
        return self._select_versions(_COMMIT)

    @property
    def newest(self) -> int:
        """-1 for a log without a commit."""
        return max(self.commits, default=-1)

    @property
    def checkpoint(self) -> int:
        """The newest checkpoint that is not empty; -1 for none."""
        return max(
            (number for number, name in self._select_versions(_CHECKPOINT).items() if self.sizes[name]),
            default=-1,
        )

    @property
    def newest_checkpoint_file(self) -> str | None:
        checkpoints = self._select_versions(_SINGLE)
        return checkpoints[max(checkpoints)] if checkpoints else None

    def missing(self) -> int | None:
        """Return the first version behind the newest checkpoint without a commit, or with an empty one.

        The newest commit may be empty: it is torn then.
        """
        if self.newest < 0:
            return None
        commits = self.commits
        first = self.checkpoint + 1 if self.checkpoint >= 0 else 0
        return next(
            (
                version
                for version in range(first, self.newest + 1)
                if version not in commits or (version < self.newest and not self.sizes[commits[version]])
            ),
            None,
        )

    def checksums_beyond(self) -> tuple[str, ...]:
        """Return checksums of versions without a commit, which was written before its checksum."""
        last = max(self.newest, self.checkpoint)
        return tuple(name for number, name in self._select_versions(_CHECKSUM).items() if number > last)

    def _select_versions(self, pattern: re.Pattern[str]) -> dict[int, str]:
        matches = ((pattern.fullmatch(name), name) for name in self.sizes)
        return {int(match[1]): name for match, name in matches if match is not None}


def is_whole_commit(content: bytes) -> bool:
    """Return whether it has an action, and each of its lines is one."""
    lines = [line for line in content.splitlines() if line.strip()]
    try:
        return bool(lines) and all(isinstance(json.loads(line), dict) for line in lines)
    except ValueError:
        return False


def refuse_damage(uri: str, *, table: str) -> None:
    """Raise `LogTornError` for what `heal_torn_log` mends, `LogDamagedError` for what it does not."""
    listing = _list_log(uri)
    if listing is None:
        return
    torn = _torn_files(uri, listing)
    if torn:
        raise LogTornError(table=table, path=uri, names=", ".join(torn))
    missing = listing.missing()
    if missing is not None and not _is_there_now(uri, missing):
        raise LogDamagedError(table=table, path=uri, version=missing)


def heal_torn_log(uri: str, *, table: str) -> tuple[str, ...]:
    """Move the torn files at the end of a log aside and return their names. A second call moves nothing.

    Only on a disk, where a loss of power leaves such files; an object appears whole or not at all.
    """
    listing = None if is_object_store(uri) else _list_log(uri)
    torn = () if listing is None else _torn_files(uri, listing)
    if not torn:
        return ()
    filesystem, folder = filesystem_of(uri)
    try:
        filesystem.create_dir(f"{folder}/{TORN}", recursive=True)
        for name in torn:
            _move_aside(filesystem, folder, name)
    except OSError as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc
    logger.warning("torn files of the log were moved aside", extra={"of": table, "uri": uri, "files": torn})
    return torn


def heal_table(lake: Lake, table: str) -> None:
    """Heal the logs of bronze, of silver and of the tables beside it. A second call changes nothing."""
    for uri in (lake.bronze(table), lake.silver(table)):
        heal_torn_log(uri, table=table)
    heal_beside_silver(lake, table)


def heal_beside_silver(lake: Lake, table: str) -> None:
    """Take back a torn step of the history, and set tombstones aside of which a step is torn."""
    heal_torn_log(lake.history(table), table=table)
    uri = lake.tombstones(table)
    listing = None if is_object_store(uri) else _list_log(uri)
    torn = () if listing is None else _torn_files(uri, listing)
    if any(_COMMIT.fullmatch(name) or _CHECKSUM.fullmatch(name) for name in torn):
        set_log_aside(uri, table=table)
    else:
        heal_torn_log(uri, table=table)


def was_set_aside(uri: str) -> bool:
    """Whether the whole log of this table was moved aside once."""
    if is_object_store(uri):
        return False
    filesystem, folder = filesystem_of(uri)
    try:
        found = filesystem.get_file_info(FileSelector(f"{folder}/{TORN}", allow_not_found=True))
    except OSError as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc
    return any(info.base_name.startswith(_ASIDE) for info in found)


def set_log_aside(uri: str, *, table: str) -> None:
    """Then there is no table, until somebody makes it in the same folder. VACUUM takes its data files."""
    filesystem, folder = filesystem_of(uri)
    try:
        filesystem.create_dir(f"{folder}/{TORN}", recursive=True)
        filesystem.move(f"{folder}/_delta_log", f"{folder}/{TORN}/{_ASIDE}{secrets.token_hex(4)}")
    except FileNotFoundError:
        return  # another attempt was faster
    except OSError as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc
    logger.warning("a torn log was set aside: the table is made again", extra={"of": table, "uri": uri})


def refuse_missing_files(uri: str, sizes: Mapping[str, int], *, table: str) -> None:
    """Raise `DataFilesGoneError` unless each file of the newest version (path -> size) is there and whole."""
    filesystem, folder = filesystem_of(uri)
    try:
        selector = FileSelector(folder, recursive=any("/" in path for path in sizes))
        present = {
            info.path: info.size for info in filesystem.get_file_info(selector) if info.type is FileType.File
        }
        missing = _missing_files(sizes, present, folder)
        if missing:
            whole = _newest_whole_version(uri, missing, present)
            way_back = "no older version in its log has all its files"
            if whole is not None:
                way_back = f"all files of version {whole} are there"
            first = ", ".join(missing[:_FEW])
            raise DataFilesGoneError(table=table, path=uri, count=len(missing), first=first, whole=way_back)
    except OSError as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc


def files_of(uri: str, *, version: int) -> Mapping[str, int]:
    """Return path -> size of each data file of one version, which the log must still describe."""
    try:
        return data_file_sizes(DeltaTable(uri, version=version, storage_options=delta_options(uri)))
    except (DeltaError, OSError) as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc


def data_file_sizes(delta: DeltaTable) -> dict[str, int]:
    """Return path -> size of each data file of the version that was loaded."""
    added = pa.table(delta.get_add_actions(flatten=True))
    return dict(zip(added["path"].to_pylist(), added["size_bytes"].to_pylist(), strict=True))


def _missing_files(sizes: Mapping[str, int], present: Mapping[str, int], folder: str) -> list[str]:
    """Return the paths below `folder` whose file is not present in its size, sorted."""
    return sorted(
        path
        for path, size in sizes.items()
        if not urlsplit(path).scheme and present.get(f"{folder}/{unquote(path)}") != size
    )


def _newest_whole_version(uri: str, missing: Sequence[str], present: Mapping[str, int]) -> int | None:
    """Return the newest older version all of whose files are present; None where there is none in the log.

    The version before the missing files came may itself lack files: those that VACUUM took, or whose commits
    have expired. It is looked into before it is named.
    """
    _, folder = filesystem_of(uri)
    version: int | None = None
    for _ in range(_MOST_VERSIONS):
        version = _version_without(uri, missing, newest=version)
        if version is None:
            return None
        try:
            missing = _missing_files(files_of(uri, version=version), present, folder)
        except StorageUnavailableError:
            return None  # the log no longer describes this version, nor any older one
        if not missing:
            return version
    return None


def _torn_files(uri: str, listing: LogListing) -> tuple[str, ...]:
    filesystem, folder = filesystem_of(uri)
    torn = [name for name in listing.checksums_beyond() if not _is_there_now(uri, int(name.split(".")[0]))]
    newest, checkpoint = listing.commits.get(listing.newest), listing.newest_checkpoint_file
    try:
        if newest is not None and not is_whole_commit(
            _read_bytes(filesystem, f"{folder}/_delta_log/{newest}")
        ):
            torn += [name for name in (newest, newest.replace(".json", ".crc")) if name in listing.sizes]
        if checkpoint is not None and not _is_parquet(filesystem, f"{folder}/_delta_log/{checkpoint}"):
            torn += [name for name in (checkpoint, _POINTER) if name in listing.sizes]
    except OSError as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc
    return tuple(torn)


def _list_log(uri: str) -> LogListing | None:
    """Return the files of the log folder; None while there is no log."""
    filesystem, folder = filesystem_of(uri)
    try:
        infos = filesystem.get_file_info(FileSelector(f"{folder}/_delta_log", allow_not_found=True))
    except OSError as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc
    sizes = {info.base_name: info.size for info in infos if info.type is FileType.File}
    return LogListing(sizes) if sizes else None


def _is_there_now(uri: str, version: int) -> bool:
    """Return whether the commit exists. A listing can show a file and lack one that was made before it."""
    filesystem, folder = filesystem_of(uri)
    try:
        return bool(filesystem.get_file_info(f"{folder}/_delta_log/{version:020d}.json").size)
    except OSError as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc


def _move_aside(filesystem: FileSystem, folder: str, name: str) -> None:
    """Move a torn file, and delete Hadoop's checksum of it, which would spoil the next file of this name."""
    path, target = f"{folder}/_delta_log/{name}", f"{folder}/{TORN}/{name}.{secrets.token_hex(4)}"
    is_commit = _COMMIT.fullmatch(name) is not None
    try:
        if is_commit and is_whole_commit(_read_bytes(filesystem, path)):
            return  # another attempt was faster, and has committed this version again
        filesystem.move(path, target)
    except FileNotFoundError:
        return
    if is_commit and is_whole_commit(_read_bytes(filesystem, target)):
        os.link(target, path)  # it did so between the two lines above; the version cannot be taken again
    with suppress(FileNotFoundError):
        filesystem.delete_file(f"{folder}/_delta_log/.{name}.crc")


def _is_parquet(filesystem: FileSystem, path: str) -> bool:
    with filesystem.open_input_file(path) as stream:
        size = stream.size()
        return bool(size >= 2 * len(_MAGIC) and stream.read_at(len(_MAGIC), size - len(_MAGIC)) == _MAGIC)


def _version_without(uri: str, paths: Sequence[str], *, newest: int | None) -> int | None:
    """Return the version before the first commit that added one of `paths`; None where no commit did.

    Commits behind the version `newest` do not count.
    """
    filesystem, folder = filesystem_of(f"{uri}/_delta_log")
    names = [info.base_name for info in filesystem.get_file_info(FileSelector(folder))]
    commits = sorted((int(match[1]), name) for name in names if (match := _COMMIT.fullmatch(name)))
    wanted = set(paths)
    for version, name in commits:
        if newest is not None and version > newest:
            break
        for line in _read_bytes(filesystem, f"{folder}/{name}").splitlines():
            if line.startswith(b'{"add"') and json.loads(line)["add"]["path"] in wanted:
                return version - 1 if version > 0 else None
    return None


def _read_bytes(filesystem: FileSystem, path: str) -> bytes:
    with filesystem.open_input_stream(path) as stream:
        return bytes(stream.read())

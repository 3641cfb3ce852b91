"""The ledger of a table whose newest commits are ours, by reading these commits only.

For looks at idle tables, of which there are many: a fraction of what a whole state costs. It gives no answer
rather than a doubtful one; whoever gets none, or finds work, asks `state.read_state`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import unquote

from pyarrow.fs import FileSystem, FileType, LocalFileSystem

from cdc_lakehouse.errors import LakehouseError
from cdc_lakehouse.lake.commits import KEEPS_THE_DATA
from cdc_lakehouse.lake.filesystem import filesystem_of
from cdc_lakehouse.lake.ledger import APPLICATION_ID, Ledger

_MAINTENANCE = frozenset({"OPTIMIZE", "VACUUM START", "VACUUM END"})
"""What may stand on top of our newest step without a thought."""
_MOST_COMMITS = 8
_MOST_FILES = 64
"""Files of the newest commit that an idle look asks for; a look that finds work asks for all."""
_WINDOW = 12
"""Versions that are asked for at once; Delta writes a checkpoint every ten."""


@dataclass(frozen=True, slots=True)
class Newest:
    version: int
    ledger: Ledger


def newest_ledger(uri: str, *, table: str) -> Newest | None:
    """None where the table does not exist, or where its newest commits leave any question open."""
    try:
        filesystem, folder = filesystem_of(f"{uri}/_delta_log")
        version = _newest_version(filesystem, folder)
        if version is None:
            return None
        commit = _read(filesystem, _commit(folder, version))
        if _may_be_torn(filesystem, folder, version, commit):
            return None
        ledger = _stated_by(filesystem, folder, version, commit, table=table)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, LakehouseError):
        return None  # what cannot be read here is read, and told, by the long way
    return None if ledger is None else Newest(version, ledger)


def ledger_at(uri: str, version: int, *, table: str) -> Ledger | None:
    """What the commit of this version states; None where it is gone, or is none of ours."""
    try:
        filesystem, folder = filesystem_of(f"{uri}/_delta_log")
        actions = list(_actions(_read(filesystem, _commit(folder, version))))
        return _ledger_in(actions, table=table)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, LakehouseError):
        return None


def metrics_of_commit(uri: str, version: int) -> Mapping[str, Any]:
    """Return the metrics that the commit of this version states. Raises `OSError` where it cannot be read."""
    filesystem, folder = filesystem_of(f"{uri}/_delta_log")
    actions = list(_actions(_read(filesystem, _commit(folder, version))))
    metrics: Mapping[str, Any] = _info_in(actions).get("operationMetrics", {})
    return metrics


def _newest_version(filesystem: FileSystem, folder: str) -> int | None:
    """Commits are numbered without a gap, so nothing has to be listed."""
    found, start, window = None, _checkpointed(filesystem, folder), _WINDOW
    while True:
        paths = [_commit(folder, version) for version in range(start, start + window)]
        exist = [info.type is FileType.File for info in filesystem.get_file_info(paths)]
        existing = exist.index(False) if False in exist else window
        if existing:
            found = start + existing - 1
        if existing < window:
            return found
        start, window = start + window, window * 2


def _may_be_torn(filesystem: FileSystem, folder: str, version: int, commit: bytes) -> bool:
    """Return whether the newest commit shows what a loss of power leaves: files that are gone or cut, or only
    the checksum of a commit behind it. An object store keeps what it has acknowledged.
    """
    if not isinstance(filesystem, LocalFileSystem):
        return False
    lines = islice((line for line in commit.splitlines() if line.startswith(b'{"add"')), _MOST_FILES)
    added = [json.loads(line)["add"] for line in lines]
    table = folder.rpartition("/")[0]
    paths = [f"{table}/{unquote(add['path'])}" for add in added]
    *infos, checksum = filesystem.get_file_info([*paths, f"{folder}/{version + 1:020d}.crc"])
    sizes = [add["size"] for add in added]
    return checksum.type is FileType.File or [info.size for info in infos] != sizes


def _checkpointed(filesystem: FileSystem, folder: str) -> int:
    path = f"{folder}/_last_checkpoint"
    if filesystem.get_file_info(path).type is not FileType.File:
        return 0
    return int(json.loads(_read(filesystem, path))["version"])


def _stated_by(
    filesystem: FileSystem, folder: str, newest: int, commit: bytes, *, table: str
) -> Ledger | None:
    """Return the ledger that the commit of version `newest`, or one below it, states."""
    for version in range(newest, max(-1, newest - _MOST_COMMITS), -1):
        content = commit if version == newest else _read(filesystem, _commit(folder, version))
        actions = list(_actions(content))
        ledger = _ledger_in(actions, table=table)
        if ledger is not None:
            step = {action["txn"]["appId"]: action["txn"]["version"] for action in actions if "txn" in action}
            is_ours = (ledger.table, ledger.seq) == (table, step.get(APPLICATION_ID))
            return ledger if is_ours and _knows_what_is_below(ledger, filesystem, folder, version) else None
        if _info_in(actions).get("operation") not in _MAINTENANCE:
            return None
    return None


def _knows_what_is_below(ledger: Ledger, filesystem: FileSystem, folder: str, version: int) -> bool:
    """As it was written, mostly: then nothing is below it that it does not follow, and nothing is read."""
    follows = version - 1 if ledger.applied.follows is None else ledger.applied.follows
    between = (
        list(_actions(_read(filesystem, _commit(folder, each)))) for each in range(follows + 1, version)
    )
    return all(_info_in(actions).get("operation") in KEEPS_THE_DATA for actions in between)


def _ledger_in(actions: list[dict[str, Any]], *, table: str) -> Ledger | None:
    return Ledger.from_json(_info_in(actions).get("userMetadata") or "", table=table)


def _info_in(actions: list[dict[str, Any]]) -> dict[str, Any]:
    return next((action["commitInfo"] for action in actions if "commitInfo" in action), {})


def _actions(commit: bytes) -> Iterator[dict[str, Any]]:
    """Those that say something about progress; files are left alone, of which there may be many."""
    for line in commit.splitlines():
        if not line.startswith((b'{"add"', b'{"remove"')):
            yield json.loads(line)


def _read(filesystem: FileSystem, path: str) -> bytes:
    with filesystem.open_input_stream(path) as stream:
        return bytes(stream.read())


def _commit(folder: str, version: int) -> str:
    return f"{folder}/{version:020d}.json"

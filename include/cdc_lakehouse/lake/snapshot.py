"""One version of a Delta table: its columns and its files, replayed from the log.

The `deltalake` package lists files and columns but refuses to read tables with type widening, which
ours have; so the actions are replayed here, and its list of files must agree with ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyarrow.fs import FileSelector

from cdc_lakehouse.errors import NotSupportedYetError, StorageUnavailableError
from cdc_lakehouse.lake.deletion_vectors import DeletionVector
from cdc_lakehouse.lake.filesystem import delta_options, filesystem_of

_KNOWN_FEATURES = frozenset({"deletionVectors", "timestampNtz", "typeWidening", "vacuumProtocolCheck"})
_COMMIT = re.compile(r"^(\d{20})\.json$")
_CHECKPOINT = re.compile(r"^(\d{20})\.checkpoint\.parquet$")
_OF_A_FILE = [
    *("add.path", "add.partitionValues", "add.size", "add.modificationTime", "add.stats", "add.tags"),
    *("add.deletionVector", "add.baseRowId", "add.defaultRowCommitVersion", "add.clusteringProvider"),
]
"""Columns that a checkpoint may have. Its parsed statistics may have times that Python does not."""


@dataclass(frozen=True, slots=True)
class DataFile:
    path: str
    """Relative to the table."""
    rows: int | None
    """Before deletions; None when the writer kept no statistics."""
    deleted: DeletionVector | None
    size: int = 0
    """In bytes."""
    nulls: Mapping[str, Any] = field(default_factory=dict)
    """Column -> how many rows have none, as the log tells it; a struct's members stand below its name."""
    oldest: Mapping[str, Any] = field(default_factory=dict)
    """Column -> its lowest value as the log writes it, of columns that have statistics."""
    newest: Mapping[str, Any] = field(default_factory=dict)
    """Column -> its highest value."""
    action: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What the log says of the file: its `add`, which a commit repeats that changes its deletion vector."""

    @property
    def hidden_rows(self) -> int:
        """Rows that its deletion vector hides."""
        return 0 if self.deleted is None else self.deleted.cardinality


@dataclass(frozen=True, slots=True)
class Snapshot:
    uri: str
    version: int
    schema: pa.Schema
    files: tuple[DataFile, ...]
    log_files: int = 0
    """Commits that the folder of the log holds."""
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    writer_features: frozenset[str] = frozenset()

    @property
    def row_count(self) -> int | None:
        """From statistics alone; None when a file has none."""
        total = 0
        for file in self.files:
            if file.rows is None:
                return None
            total += file.rows - file.hidden_rows
        return total


def newest_snapshot(uri: str) -> Snapshot | None:
    """None while the table does not exist."""
    return snapshot_at(uri, None)


def snapshot_at(uri: str, version: int | None) -> Snapshot | None:
    """Return one version of a table, the newest for None; None while the table does not exist."""
    try:
        table = DeltaTable(uri, version=version, storage_options=delta_options(uri))
        version = table.version()
        _refuse_what_we_cannot_read(table, uri)
        files, log_files = _replayed(uri, version=version)
        if len(files) != len(table.file_uris()):
            raise StorageUnavailableError(root=uri, reason=f"version {version} changed while it was read")
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc
    return Snapshot(
        uri=uri,
        version=version,
        schema=pa.schema(table.schema().to_arrow()),
        files=files,
        log_files=log_files,
        properties=table.metadata().configuration,
        writer_features=frozenset(table.protocol().writer_features or ()),
    )


def files_at(uri: str, version: int) -> tuple[DataFile, ...]:
    """Return the files of one version, which the log must still describe; the folder may lack them."""
    try:
        files, _ = _replayed(uri, version=version)
    except OSError as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc
    return files


def _refuse_what_we_cannot_read(table: DeltaTable, uri: str) -> None:
    unknown = set(table.protocol().reader_features or ()) - _KNOWN_FEATURES
    if unknown:
        raise NotSupportedYetError(feature=f"reading {uri} with {', '.join(sorted(unknown))}")
    if table.metadata().partition_columns:
        raise NotSupportedYetError(feature=f"reading {uri}, which is partitioned,")


def _replayed(uri: str, *, version: int) -> tuple[tuple[DataFile, ...], int]:
    """Return the files that `version` consists of, and how many commits the log holds."""
    filesystem, folder = filesystem_of(f"{uri}/_delta_log")
    names = [info.base_name for info in filesystem.get_file_info(FileSelector(folder))]
    checkpoints = [int(found[1]) for name in names if (found := _CHECKPOINT.match(name))]
    commits = {int(found[1]): name for name in names if (found := _COMMIT.match(name))}
    base = max((number for number in checkpoints if number <= version), default=-1)
    active: dict[str, DataFile] = {}
    if base >= 0:
        with filesystem.open_input_file(f"{folder}/{base:020d}.checkpoint.parquet") as stream:
            for document in (
                pq.ParquetFile(stream, page_checksum_verification=True)
                .read(columns=_OF_A_FILE)["add"]
                .to_pylist()
            ):
                _apply({"add": _without_nulls(document)}, active)
    for number in range(base + 1, version + 1):
        if number not in commits:
            raise StorageUnavailableError(root=uri, reason=f"its log lacks version {number}")
        with filesystem.open_input_stream(f"{folder}/{commits[number]}") as stream:
            for action in _in_order(bytes(stream.read())):
                _apply(action, active)
    return tuple(active.values()), len(commits)


def _without_nulls(document: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a row of a checkpoint as a commit would say it; None of a row that is no `add`."""
    if document is None:
        return None
    facts = {name: value for name, value in document.items() if value is not None}
    for name in ("partitionValues", "tags"):
        if name in facts:
            facts[name] = dict(facts[name])
    return facts


def _in_order(commit: bytes) -> Iterator[Mapping[str, Any]]:
    """Removals first: within a commit a file may be replaced by itself with another deletion vector."""
    actions = [json.loads(line) for line in commit.splitlines() if line.strip()]
    yield from (action for action in actions if "remove" in action)
    yield from (action for action in actions if "add" in action)


def _apply(action: Mapping[str, Any], active: dict[str, DataFile]) -> None:
    removed, added = action.get("remove"), action.get("add")
    if removed:
        active.pop(unquote(removed["path"]), None)
    if added:
        vector = added.get("deletionVector")
        told = json.loads(added["stats"]) if added.get("stats") else {}
        path = unquote(added["path"])
        deleted = DeletionVector.from_action(vector) if vector else None
        active[path] = DataFile(
            path=path,
            rows=told.get("numRecords"),
            deleted=deleted,
            size=added["size"],
            nulls=told.get("nullCount", {}),
            oldest=told.get("minValues", {}),
            newest=told.get("maxValues", {}),
            action=added,
        )

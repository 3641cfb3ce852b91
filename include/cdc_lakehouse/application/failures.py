"""What an exception means to the caller: the error of our tree behind it, or a bug."""

from __future__ import annotations

import re

from cdc_lakehouse.contract import ExitCode, TableError
from cdc_lakehouse.errors import (
    BrokerUnavailableError,
    FileDamagedError,
    KafkaMovedError,
    LakehouseError,
    StorageUnavailableError,
    SupersededError,
    TableChangedError,
)
from cdc_lakehouse.redaction import exception_without_values

_MOVED = re.compile(
    r"\[?KAFKA_DATA_LOSS|OffsetOutOfRangeException|Some data may have been lost"
    r"|KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED|must specify all TopicPartitions"
)
"""Spark found less, or more, than the plan said; what that means, the next plan tells."""
_KAFKA = re.compile(
    r"org\.apache\.kafka\.common\.errors\.\w+"
    r"|org\.apache\.kafka\.common\.KafkaException"
    r"|Failed to (?:create new KafkaAdminClient|construct kafka consumer)"
)
_CONCURRENT = re.compile(r"DELTA_CONCURRENT_\w+|Concurrent(?:Transaction|Append|Write|DeleteRead)Exception")
_CHANGED = re.compile(
    r"DELTA_METADATA_CHANGED|DELTA_PROTOCOL_CHANGED|\[FIELD_ALREADY_EXISTS|DELTA_MERGE_UNRESOLVED_EXPRESSION"
)
"""Two merges of one table met at a new column; which of them goes on, the next look tells."""
_STORAGE = re.compile(r"No space left on device|Permission denied|Read-only file system|Disk quota exceeded")
_OBJECT_STORE = re.compile(
    r"software\.amazon\.awssdk\.[\w.]*Exception|org\.apache\.hadoop\.fs\.s3a\.\w+Exception"
)
_THROWN_BY_IO = re.compile(
    r"^: (?:java\.(?:io|net|nio)\.(?!URISyntax|NotSerializable)|org\.apache\.hadoop\.(?:fs|hdfs|ipc|net)\.)"
    r"[\w.$]*Exception",
    re.MULTILINE,
)
"""As py4j tells what the driver threw; of a task's failure it would be the cause. A commit may have happened
then: the next try finds it, or makes it again."""
_DAMAGED = re.compile(
    r"CRC checksum verification failed|is not a Parquet file|org\.apache\.hadoop\.fs\.ChecksumException"
    r"|can not read class org\.apache\.parquet\.format"
)
_DATA_FILE = re.compile(r"\w+:/[^\s\"']+?\.parquet")
_LINE = 300


def translated(exc: BaseException, *, table: str, attempt: str, bootstrap: str, root: str) -> BaseException:
    """Spark wraps causes in text; the causes that a person can act on become errors of our tree."""
    if isinstance(exc, LakehouseError):
        return exc
    text = str(exc)
    refused = _refused_by_delta(exc, table=table, attempt=attempt) or _damaged_file(text, table=table)
    if refused is not None:
        return refused
    if (reason := _what_the_store_says(text)) is not None:
        return StorageUnavailableError(root=root, reason=reason)
    if (found := _MOVED.search(text)) is not None:
        return KafkaMovedError(table=table, what=_line_with(text, found.start()))
    if (found := _KAFKA.search(text)) is not None:
        return BrokerUnavailableError(bootstrap=bootstrap, reason=_line_with(text, found.start()))
    return exc


def _refused_by_delta(exc: BaseException, *, table: str, attempt: str) -> LakehouseError | None:
    if is_conflict(exc):
        return SupersededError(table=table, seq=-1, attempt=attempt)
    found = _CHANGED.search(str(exc))
    return (
        None if found is None else TableChangedError(table=table, reason=_line_with(str(exc), found.start()))
    )


def _damaged_file(text: str, *, table: str) -> LakehouseError | None:
    """Return the error of a file that fails its checksums, as it will at the next try."""
    damage = _DAMAGED.search(text)
    if damage is None:
        return None
    file = _DATA_FILE.search(text)
    what = damage.group() if file is None else f"{damage.group()}: {file.group()}"
    return FileDamagedError(table=table, what=what)


def _what_the_store_says(text: str) -> str | None:
    if (found := _STORAGE.search(text)) is not None:
        return found.group()
    if (found := _OBJECT_STORE.search(text)) is not None:
        return _line_with(text, found.start())
    found = _THROWN_BY_IO.search(text)
    return None if found is None else _line_with(text, found.start()).removeprefix(": ")


def is_damage(exc: BaseException) -> bool:
    """Return whether a file did not have what its checksums say."""
    return _DAMAGED.search(str(exc)) is not None


def is_conflict(exc: BaseException) -> bool:
    """Delta refused a commit because another one was faster."""
    return _CONCURRENT.search(str(exc)) is not None


def as_table_error(exc: BaseException) -> TableError:
    if isinstance(exc, LakehouseError):
        return exc.as_table_error()
    return TableError(
        code="BUG",
        exit_code=ExitCode.BUG,
        sentence=exception_without_values(exc),
        advice="This release does not foresee it. The log has the traceback; the next try starts clean.",
    )


def _line_with(text: str, position: int) -> str:
    start = text.rfind("\n", 0, position) + 1
    return text[start:].splitlines()[0].strip()[:_LINE]

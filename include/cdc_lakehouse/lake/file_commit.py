"""Commit data files together with the ledger: one step, checked inside Delta's own transaction.

Compare-and-set (`architecture` §5): the step that is committed must follow the one that was read, and every
partition must stand where the ledger says. Who loses commits nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from cdc_lakehouse.errors import (
    FilesGoneError,
    LakehouseError,
    LedgerLostError,
    StorageUnavailableError,
    SupersededError,
    TableChangedError,
)
from cdc_lakehouse.lake.delta_transaction import DataFile, DeltaTransaction, Refusal, refusal_of, why
from cdc_lakehouse.lake.filesystem import filesystem_of
from cdc_lakehouse.lake.ledger import APPLICATION_ID, Ledger, partition_id, transaction_ids
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.lake.versions import missing_files

logger = logging.getLogger(__name__)

_TRIES = 5
"""Each gives way to another commit, OPTIMIZE's mostly; the files stay as they are."""


def commit_files(
    session: SparkSession,
    uri: str,
    files: Sequence[DataFile],
    *,
    before: Ledger,
    after: Ledger,
    schema: StructType,
    known: int | None = None,
) -> int:
    """Add `files` and state `after`; the version that holds them. `schema` is what the files were made for.

    `known` is a version that was found to have `before` as its newest ledger and no foreign change of data
    behind it. A second call with the same step commits nothing: it raises `SupersededError`, or returns the
    version of its first call where that was the newest step still.
    """

    def commit(transaction: DeltaTransaction) -> int:
        transaction.evolve(schema)
        refuse_missing(uri, files, table=after.table)
        return transaction.commit(files, transaction_ids(after), metadata=after.to_json(), step=after.seq)

    return _commit_step(session, uri, commit, before=before, after=after, known=known)


def commit_version_again(
    session: SparkSession, uri: str, *, version: int, before: Ledger, after: Ledger, known: int | None = None
) -> int:
    """Give the table the rows of `version` again, state `after`, and return the version that has them.

    No data is written; columns that the table got since stay. `known` and a second call are as in
    `commit_files`.
    """

    def commit(transaction: DeltaTransaction) -> int:
        actions = transaction.actions_back_to(version)
        gone = missing_files(uri, version)
        if gone:
            raise FilesGoneError(table=after.table, count=len(gone), first=gone[0])
        ids = transaction_ids(after)
        return transaction.commit([], ids, metadata=after.to_json(), step=after.seq, more=actions)

    return _commit_step(session, uri, commit, before=before, after=after, known=known)


def _commit_step(
    session: SparkSession,
    uri: str,
    commit: Callable[[DeltaTransaction], int],
    *,
    before: Ledger,
    after: Ledger,
    known: int | None,
) -> int:
    """Return the version that `commit` made of a table that stands at `before`; give way to other commits."""
    reason = ""
    for _ in range(_TRIES):
        try:
            transaction = DeltaTransaction.start(session, uri)
            if transaction.read_version != known and (made := _made(uri, after)) is not None:
                return made
            _refuse_unless_next(transaction, uri, before=before, after=after)
            return commit(transaction)
        except LakehouseError:
            raise
        except Exception as exc:
            # It may have happened nevertheless: only the table knows.
            made = _made(uri, after)
            if made is not None:
                logger.warning("commit threw but had happened", extra={"seq": after.seq, "reason": why(exc)})
                return made
            known, reason = None, why(exc)
            match refusal_of(exc):
                case Refusal.CHANGED:
                    logger.info("another commit came first", extra={"seq": after.seq, "reason": reason})
                case Refusal.STORAGE:
                    raise StorageUnavailableError(root=uri, reason=reason) from exc
                case Refusal.SCHEMA:
                    break
                case Refusal.OTHER:
                    raise
    raise TableChangedError(table=after.table, reason=reason)


def _made(uri: str, after: Ledger) -> int | None:
    """The version that holds the step already, None when it is still to be made.

    Raises for every other state: a foreign change of data, another attempt's step, a lost ledger.
    """
    state = read_state(uri, table=after.table)
    if state is None or state.seq < after.seq:
        return None
    if state.ledger is not None and (state.ledger.seq, state.ledger.attempt) == (after.seq, after.attempt):
        return state.version
    raise _superseded(after)


def _refuse_unless_next(transaction: DeltaTransaction, uri: str, *, before: Ledger, after: Ledger) -> None:
    ends = {
        partition_id(source, partition): before.end(source, partition)
        for source, partitions in after.added.items()
        for partition in partitions
    }
    versions = transaction.versions_of([APPLICATION_ID, *ends])
    step = versions[APPLICATION_ID] or 0
    if step > before.seq:
        raise _superseded(after)
    # Tables of release 0.1.0 have no ids of partitions; the step alone fences them.
    if step < before.seq or any(versions[name] not in (None, end) for name, end in ends.items()):
        raise LedgerLostError(table=after.table, path=uri)


def refuse_missing(uri: str, files: Sequence[DataFile], *, table: str) -> None:
    """Raise `FilesGoneError` unless all files are there: VACUUM may have taken those of a slow attempt."""
    filesystem, folder = filesystem_of(uri)
    try:
        infos = filesystem.get_file_info([f"{folder}/{file.name}" for file in files])
    except OSError as exc:
        raise StorageUnavailableError(root=uri, reason=str(exc)) from exc
    gone = [file.name for file, info in zip(files, infos, strict=True) if info.size != file.size]
    if gone:
        raise FilesGoneError(table=table, count=len(gone), first=gone[0])


def _superseded(after: Ledger) -> SupersededError:
    return SupersededError(table=after.table, seq=after.seq - 1, attempt=after.attempt)

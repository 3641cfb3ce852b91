"""Delta's own transaction, from Python: data files, schema and ledger in one commit, or nothing.

The only module that knows this API, which Delta keeps for itself: what is relied upon here has a test in
`tests/spark/test_delta_transaction.py`, and Delta is pinned to one version.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any
from uuid import uuid4

from delta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from py4j.java_gateway import JavaObject, JVMView
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from cdc_lakehouse.errors import NotSupportedYetError, StorageUnavailableError
from cdc_lakehouse.lake.filesystem import delta_options

_DELTA = "org.apache.spark.sql.delta"
WRITABLE_FEATURES = frozenset(
    {
        "appendOnly",
        "invariants",
        "changeDataFeed",
        "checkConstraints",
        "deletionVectors",
        "domainMetadata",
        "clustering",
        "inCommitTimestamp",
        "rowTracking",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",
    }
)
"""Table features that ask nothing of who writes a data file. With others (column mapping, generated
columns, …) our files would be read wrong."""


NTZ = "timestamp_ntz"
NTZ_FEATURE = {"delta.feature.timestampNtz": "supported"}
"""What a table asks for that gets its first column of this type; Delta does not enable it by itself then."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file that lies in the table's folder already."""

    name: str
    size: int
    modified: int
    """Milliseconds since 1970 UTC."""
    statistics: Mapping[str, Any]

    def action(self) -> dict[str, Any]:
        return {
            "add": {
                "path": self.name,
                "partitionValues": {},
                "size": self.size,
                "modificationTime": self.modified,
                "dataChange": True,
                "stats": json.dumps(self.statistics),
            }
        }


class Refusal(Enum):
    """What an exception of a transaction says about the table; never whether the commit happened."""

    CHANGED = auto()
    """Somebody else committed first: data, a transaction id, schema or protocol."""
    STORAGE = auto()
    SCHEMA = auto()
    """The rows do not fit the table as it is now."""
    OTHER = auto()


_CONFLICTS = (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)


def refusal_of(exc: Exception) -> Refusal:
    """PySpark gives Python classes to the exceptions that it knows; the others say what caused them."""
    if isinstance(exc, _CONFLICTS):
        return Refusal.CHANGED
    if isinstance(exc, AnalysisException):
        return Refusal.SCHEMA
    if isinstance(exc, Py4JJavaError) and "java.io.IOException" in _ancestry(exc.java_exception):
        return Refusal.STORAGE
    return Refusal.OTHER


def _ancestry(thrown: JavaObject | None) -> set[str]:
    """Names of the classes of an exception and of all that caused it."""
    found = set()
    while thrown is not None:
        kind = thrown.getClass()
        while kind is not None:
            found.add(kind.getName())
            kind = kind.getSuperclass()
        thrown = thrown.getCause()
    return found


def why(exc: Exception) -> str:
    """Class and first line of an exception; none of its stack."""
    if isinstance(exc, Py4JJavaError):
        thrown = exc.java_exception
        return _first_line(thrown.getClass().getSimpleName(), thrown.getMessage())
    return _first_line(type(exc).__name__, str(exc))


def _first_line(name: str, message: str | None) -> str:
    lines = (message or "").strip().splitlines()
    return f"{name}: {lines[0] if lines else 'no message'}"


def removal_of(add: Mapping[str, Any], *, at: int) -> dict[str, Any]:
    """Return the action that takes a file out of the table; `at` is in milliseconds since 1970 UTC."""
    names = ("path", "partitionValues", "size", "tags", "deletionVector", "stats")
    facts = {name: add[name] for name in names if name in add}
    return {**facts, "deletionTimestamp": at, "dataChange": True, "extendedFileMetadata": True}


def create_table(
    session: SparkSession, uri: str, *, schema: StructType, properties: Mapping[str, str]
) -> bool:
    """Version 0 of a table. A second call, or another's at the same moment, changes nothing: False.

    Delta's own builder takes a folder that is not empty for a table, and then does not make one: what a
    process leaves that ended before its first commit would stop the table for good.
    """
    jvm = session._jvm
    none = jvm.scala.Option.empty()
    log = getattr(jvm, f"{_DELTA}.DeltaLog").forTable(session._jsparkSession, uri)
    transaction = log.startTransaction(none, none)
    if int(transaction.readVersion()) >= 0:
        return False
    document = {
        "id": str(uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema.json(),
        "partitionColumns": [],
        "configuration": dict(properties),
        "createdTime": time.time_ns() // 1_000_000,
    }
    actions = getattr(getattr(jvm, f"{_DELTA}.actions.Action$"), "MODULE$")
    metadata = actions.fromJson(json.dumps({"metaData": document}))
    transaction.updateMetadataForNewTable(metadata)
    operation = getattr(jvm, f"{_DELTA}.DeltaOperations$CreateTable")(metadata, False, False, none)
    nothing = jvm.scala.jdk.javaapi.CollectionConverters.asScala(jvm.java.util.ArrayList()).toSeq()
    try:
        transaction.commit(nothing, operation)
    except Exception:
        # Somebody else made it, or it was made here and its answer lost: only the folder knows.
        if int(log.startTransaction(none, none).readVersion()) < 0:
            raise
        return False
    return True


class DeltaTransaction:
    """One attempt at one commit on the table's newest version.

    Whatever somebody else commits between `start` and `commit` makes `commit` raise: data, because the
    transaction counts as having read the whole table; a transaction id that was asked for; the schema.
    Nothing is skipped in silence. That it raised says nothing about whether it committed.
    """

    def __init__(self, session: SparkSession, uri: str, transaction: JavaObject) -> None:
        self._session = session
        self._uri = uri
        self._transaction = transaction

    @classmethod
    def start(cls, session: SparkSession, uri: str, *, reads_rows: bool = True) -> DeltaTransaction:
        """Raises `NotSupportedYetError` for a table whose features our files do not know.

        With `reads_rows` false the transaction does not count as having read the table: data of somebody else
        makes `commit` raise only if both remove the same file.
        """
        jvm = session._jvm
        log = getattr(jvm, f"{_DELTA}.DeltaLog").forTable(session._jsparkSession, uri)
        none = jvm.scala.Option.empty()
        transaction = cls(session, uri, log.startTransaction(none, none))
        transaction._refuse_features(uri)
        if reads_rows:
            transaction._transaction.readWholeTable()
        return transaction

    @property
    def read_version(self) -> int:
        """The version that the commit builds on."""
        return int(self._transaction.readVersion())

    @property
    def java(self) -> JavaObject:
        """Delta's own, for `lake.row_replacement`."""
        return self._transaction

    def versions_of(self, applications: Iterable[str]) -> dict[str, int | None]:
        """Of transaction ids; nobody else can move them until the commit, or the commit raises.

        Asked of the log: Delta's own answer computes the whole state of the table, a second per commit.
        """
        names = list(applications)
        for name in names:
            self._transaction.readTxn().append(name)
        try:
            log = DeltaTable(self._uri, version=self.read_version, storage_options=delta_options(self._uri))
            return {name: log.transaction_version(name) for name in names}
        except (DeltaError, OSError) as exc:
            raise StorageUnavailableError(root=self._uri, reason=str(exc)) from exc

    def evolve(self, schema: StructType) -> bool:
        """Add columns and widen types so that rows of `schema` fit, as `mergeSchema` of Spark's writer does.

        Raises if that cannot be (`Refusal.SCHEMA`). False when there is nothing to do.
        """
        wanted = self._session._jsparkSession.parseDataType(schema.json())
        metadata = self._transaction.metadata()
        merged = self._object("schema.ImplicitMetadataOperation").mergeSchema(
            self._session._jsparkSession, self._transaction, wanted, False, False
        )
        if merged.json() == metadata.schema().json():
            return False
        widened = self._object("TypeWideningMetadata").addTypeWideningMetadata(
            self._transaction, merged, metadata.schema()
        )
        document = json.loads(metadata.json())
        document["metaData"]["schemaString"] = widened.json()
        if NTZ in document["metaData"]["schemaString"]:
            document["metaData"].setdefault("configuration", {}).update(NTZ_FEATURE)
        self._transaction.updateMetadata(self._action(document), False)
        return True

    def actions_back_to(self, version: int) -> list[dict[str, Any]]:
        """Return the actions after which the table has the files of `version`, with their deletion vectors.

        They name files, and write none: those of `version` must still be there.
        """
        log = self._transaction.deltaLog()
        none = self._jvm.scala.Option.empty()
        then = self._adds_of(log.getSnapshotAt(version, none, none, False))
        now = self._adds_of(self._transaction.snapshot())
        removed_at = time.time_ns() // 1_000_000
        removals = [removal_of(add, at=removed_at) for place, add in now.items() if place not in then]
        additions = [{**add, "dataChange": True} for place, add in then.items() if place not in now]
        return [*({"remove": each} for each in removals), *({"add": each} for each in additions)]

    def _adds_of(self, snapshot: JavaObject) -> dict[tuple[str, str], dict[str, Any]]:
        """Return the files of a snapshot by path and deletion vector."""
        adds = (json.loads(text) for text in snapshot.allFiles().toJSON().collectAsList())
        return {(add["path"], json.dumps(add.get("deletionVector"), sort_keys=True)): add for add in adds}

    def commit(
        self,
        files: Iterable[DataFile],
        versions: Mapping[str, int],
        *,
        metadata: str,
        step: int,
        more: Iterable[Mapping[str, Any]] = (),
    ) -> int:
        """Add `files`, set transaction ids and leave `metadata`; the version that this made.

        `more` are further actions, like those of `actions_back_to`. Not to be repeated: another try needs
        another transaction.
        """
        actions: list[Mapping[str, Any]] = [file.action() for file in files]
        actions += [{"txn": {"appId": name, "version": number}} for name, number in versions.items()]
        actions += more
        operation = getattr(self._jvm, f"{_DELTA}.DeltaOperations$StreamingUpdate")(
            self._jvm.org.apache.spark.sql.streaming.OutputMode.Append(),
            next(iter(versions), ""),
            step,
            self._jvm.scala.Option.apply(metadata),
        )
        return int(self._transaction.commit(self._to_scala(actions), operation))

    def commit_rewrite(self, actions: Iterable[Mapping[str, Any]]) -> int:
        """Replace files by others with the same rows, as OPTIMIZE does; the version that this made."""
        nothing, none = self._to_scala([]), self._jvm.scala.Option.empty()
        operation = getattr(self._jvm, f"{_DELTA}.DeltaOperations$Optimize")(
            nothing, nothing, False, none, False
        )
        return int(self._transaction.commit(self._to_scala(actions), operation))

    def _to_scala(self, actions: Iterable[Mapping[str, Any]]) -> JavaObject:
        in_java = self._jvm.java.util.ArrayList()
        for action in actions:
            in_java.add(self._action(action))
        return self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(in_java).toSeq()

    @property
    def _jvm(self) -> JVMView:
        return self._session._jvm

    def _object(self, name: str) -> JavaObject:
        """A Scala object of Delta's."""
        return getattr(getattr(self._jvm, f"{_DELTA}.{name}$"), "MODULE$")

    def _action(self, document: Mapping[str, Any]) -> JavaObject:
        return self._object("actions.Action").fromJson(json.dumps(document))

    def _refuse_features(self, uri: str) -> None:
        protocol = json.loads(self._transaction.protocol().json())["protocol"]
        metadata = json.loads(self._transaction.metadata().json())["metaData"]
        strange = set(protocol.get("writerFeatures", ())) - WRITABLE_FEATURES
        if metadata.get("configuration", {}).get("delta.columnMapping.mode", "none") != "none":
            strange.add("columnMapping")
        if metadata.get("partitionColumns"):
            strange.add("partition columns")
        if strange:
            raise NotSupportedYetError(feature=f"the table at {uri} with {', '.join(sorted(strange))}")

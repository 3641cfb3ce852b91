"""Rows leave their files and others come, in one commit of Delta's own transaction (decision 0031).

What makes deletion vectors here is what makes them for Delta's own MERGE. It is no public interface, as
little as the transaction is: `tests/spark/test_row_replacement.py` names what is relied upon.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from py4j.java_gateway import JavaObject
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.errors import NotSupportedYetError, SupersededError
from cdc_lakehouse.lake.delta_transaction import DeltaTransaction
from cdc_lakehouse.lake.ledger import APPLICATION_ID, Ledger

FILE, ROW = "_cdc_file", "_cdc_row"
"""Columns that say where a row is: `_metadata.file_path` and `_metadata.row_index`."""
_SQL = "org.apache.spark.sql"
_COMMANDS = f"{_SQL}.delta.commands"
_TOLD_BY_MERGE = ("delta.enableChangeDataFeed", "delta.enableRowTracking")
"""What a table may want to be told of a row that changed: only MERGE does."""
VECTORS = "delta.enableDeletionVectors"


def can_replace_rows(properties: Mapping[str, str]) -> bool:
    """Return whether rows of a table with these properties can leave their files.

    MERGE alone writes the change data and the row ids that a table may ask for.
    """
    needs_merge = any(properties.get(name) == "true" for name in _TOLD_BY_MERGE)
    return properties.get(VECTORS) == "true" and not needs_merge


class RowReplacement:
    """One attempt at one commit, on the version that was the newest when it was begun.

    Whatever somebody else commits until then makes `commit` raise (`lake.delta_transaction`).
    """

    def __init__(self, session: SparkSession, transaction: DeltaTransaction) -> None:
        self._session = session
        self._delta = transaction
        self._actions = session._jvm.java.util.ArrayList()
        self._files = self._seq([])
        """Of the rows that were looked at: no others can be removed."""

    @classmethod
    def begun(cls, session: SparkSession, uri: str) -> RowReplacement | None:
        """None for a table whose rows cannot leave their files, or whose changes Delta has to tell."""
        try:
            transaction = DeltaTransaction.start(session, uri)
        except NotSupportedYetError:
            return None
        metadata = json.loads(transaction.java.metadata().json())["metaData"]
        return cls(session, transaction) if can_replace_rows(metadata.get("configuration", {})) else None

    def refuse_unless_next(self, ledger: Ledger) -> None:
        step = self._delta.versions_of([APPLICATION_ID])[APPLICATION_ID] or 0
        if step != ledger.seq - 1:
            raise SupersededError(table=ledger.table, seq=ledger.seq - 1, attempt=ledger.attempt)

    def rows(self, within: Column) -> DataFrame:
        """Of the version that this builds on, and where they are: all that meet `within`, and some others.

        Its names are those of an alias `t`. Read through the transaction, whose state is there already: by
        its number Delta would compute that of the version once more.
        """
        nothing = self._frame(self._seq([]))
        condition = nothing.alias("t").where(within)._jdf.queryExecution().analyzed().condition()
        self._files = self._delta.java.filterFiles(self._seq([condition]), True)
        return self._frame(self._files).select(
            "*", F.col("_metadata.file_path").alias(FILE), F.col("_metadata.row_index").alias(ROW)
        )

    def _frame(self, files: JavaObject) -> DataFrame:
        transaction, none = self._delta.java, self._session._jvm.scala.Option.empty()
        found = transaction.deltaLog().createDataFrame(transaction.snapshot(), files, False, none)
        # Delta made it in whatever session its thread had last; the settings of this one are meant.
        plan = found.queryExecution().logical()
        ours = self._scala(f"{_SQL}.classic.Dataset").ofRows(self._session._jsparkSession, plan)
        return DataFrame(ours, self._session)

    def remove(self, places: DataFrame) -> None:
        """Those of `rows` that are at `places` (`FILE`, `ROW`) are gone. Writes the vectors, once."""
        jvm, transaction, files = self._session._jvm, self._delta.java, self._files
        true = getattr(jvm, f"{_SQL}.catalyst.expressions.Literal").TrueLiteral()
        found = self._scala(
            f"{_COMMANDS}.DeletionVectorBitmapGenerator"
        ).buildRowIndexSetsForFilesMatchingCondition(
            self._session._jsparkSession,
            transaction,
            True,
            places._jdf,
            files,
            true,
            jvm.scala.Option.apply(places[FILE]._jc),
            jvm.scala.Option.apply(places[ROW]._jc),
        )
        helper = self._scala(f"{_COMMANDS}.DMLWithDeletionVectorsHelper")
        named = helper.generateCandidateFileMap(transaction.deltaLog().dataPath(), files)
        touched = helper.findFilesWithMatchingRows(transaction, named, found)
        prefix = self._scala(f"{_SQL}.delta.stats.StatsCollectionUtils").getDataSkippingStringPrefixLength(
            self._session._jsparkSession, transaction.metadata()
        )
        actions = helper.processUnmodifiedData(
            self._session._jsparkSession, touched, transaction.snapshot(), prefix
        )._1()
        self._actions.addAll(self._converters.asJava(actions))

    def add(self, rows: DataFrame) -> None:
        """Writes files of `rows`, which have the columns of the table."""
        self._actions.addAll(self._converters.asJava(self._delta.java.writeFiles(rows._jdf)))

    def commit(self, ledger: Ledger) -> None:
        """State `ledger` with all of it. Not to be repeated."""
        action = self._scala(f"{_SQL}.delta.actions.Action")
        step = {"txn": {"appId": APPLICATION_ID, "version": ledger.seq}}
        self._actions.add(action.fromJson(json.dumps(step)))
        jvm = self._session._jvm
        operation = getattr(jvm, f"{_SQL}.delta.DeltaOperations$StreamingUpdate")(
            jvm.org.apache.spark.sql.streaming.OutputMode.Update(),
            APPLICATION_ID,
            ledger.seq,
            jvm.scala.Option.apply(ledger.to_json()),
        )
        self._delta.java.commit(self._converters.asScala(self._actions).toSeq(), operation)

    @property
    def _converters(self) -> JavaObject:
        return self._session._jvm.scala.jdk.javaapi.CollectionConverters

    def _seq(self, objects: Sequence[JavaObject]) -> JavaObject:
        found = self._session._jvm.java.util.ArrayList()
        for each in objects:
            found.add(each)
        return self._converters.asScala(found).toSeq()

    def _scala(self, name: str) -> JavaObject:
        return getattr(getattr(self._session._jvm, f"{name}$"), "MODULE$")

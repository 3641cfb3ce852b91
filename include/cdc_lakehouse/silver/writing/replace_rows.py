"""Apply folded changes to silver by where its rows are: one look at the keys instead of three at all rows.

Delta's MERGE reads the table once to find the files, once for what it writes and once for the deletion
vectors. A change that tells its whole row needs nothing of the old one but its place (decision 0031).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import AtomicType, StructType

from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.lake.row_replacement import FILE, ROW, RowReplacement
from cdc_lakehouse.lake.transaction import commit
from cdc_lakehouse.silver.folding.fold import GONE
from cdc_lakehouse.silver.folding.refold import REFOLDED
from cdc_lakehouse.silver.writing.changed_keys import ChangedKeys
from cdc_lakehouse.silver.writing.merge import MergeResult, merge
from cdc_lakehouse.silver.writing.merge_plan import MergePlan

MOST_CHANGES = 500_000
"""Their keys are sent to every task."""
_ROWS_PER_FILE = 250_000
_GATE = ("_cdc_position", "_cdc_tx_id")
_APPLIES = "_cdc_applies"
_SAME_TRANSACTION = "_cdc_same_transaction"


@dataclass(frozen=True, slots=True)
class Matches:
    """Rows of silver that have the key of a change, and are not newer than it."""

    updated: int
    deleted: int
    stale: int
    """Changes that silver has, or has newer ones of."""
    uncertain: int
    """Of a transaction that silver knows: more than its commit has to be compared."""


def suits(plan: MergePlan, changes: DataFrame, table: StructType) -> bool:
    """Whether what is written is known without the rows that are there, and no others go.

    Values in values may have their parts in another order than the table: MERGE knows how to put them.
    """
    same = all(
        isinstance(field.dataType, AtomicType) or field.dataType == changes.schema[field.name].dataType
        for field in table
        if field.name in plan.names
    )
    partial = plan.keeps_deleted or plan.lacking or plan.cleared is not None or plan.sets_all
    return not partial and same


def replace_rows(
    session: SparkSession,
    uri: str,
    *,
    changes: DataFrame,
    plan: MergePlan,
    ledger: Ledger,
    certain: bool,
) -> MergeResult:
    """As `merge`, for changes that suit; where the table does not, it is that.

    `certain` says that no event has the commit of one that silver has applied, or an older one.
    """
    keys = ChangedKeys.of(changes, plan.keys)
    is_too_much = keys.has_null or keys.there > MOST_CHANGES
    replacement = None if is_too_much else RowReplacement.begun(session, uri)
    if replacement is None:
        return merge(session, uri, changes=changes, plan=plan, ledger=ledger, keys=keys)
    return _Replacing(session, uri, changes, plan, keys, replacement).run(ledger, certain=certain)


@dataclass(frozen=True, slots=True)
class _Replacing:
    session: SparkSession
    uri: str
    changes: DataFrame
    plan: MergePlan
    keys: ChangedKeys
    replacement: RowReplacement

    def run(self, ledger: Ledger, *, certain: bool) -> MergeResult:
        self.replacement.refuse_unless_next(ledger)
        rows = self.replacement.rows(self.keys.contain("t"))
        found = self._found(rows, gated=not certain)
        try:
            matches = _counted(found)
            if matches.uncertain:
                found.unpersist()
                found = self._found(rows, gated=True)
                matches = _counted(found)
            self._write(found, matches)
        finally:
            found.unpersist()
        state = commit(lambda: self.replacement.commit(ledger), uri=self.uri, ledger=ledger)
        return MergeResult(
            version=state.version,
            inserted=self.keys.there - matches.updated - matches.stale,
            updated=matches.updated,
            deleted=matches.deleted,
        )

    def _write(self, found: DataFrame, matches: Matches) -> None:
        fresh = self.changes.where(~F.col(GONE))
        if matches.stale:
            fresh = fresh.alias("f").join(
                found.where(~F.col(_APPLIES)).alias("s"), self._same_key(), "left_anti"
            )
        if matches.updated or matches.deleted:
            self.replacement.remove(found.where(_APPLIES))
        self.replacement.add(self._written(fresh))

    def _found(self, rows: DataFrame, *, gated: bool) -> DataFrame:
        """Where those of `rows` are that have the key of a change; one look at these columns alone."""
        names = [*self.plan.keys, *_GATE, GONE, *([REFOLDED] if self.plan.refolds else [])]
        wanted = F.broadcast(self.changes.select(*map(quoted, names))).alias("f")
        same = F.col("s._cdc_tx_id") == F.col("f._cdc_tx_id")
        applies = self.plan.applies() if gated else F.lit(True)
        within = rows.alias("t").where(self.keys.contain("t")).alias("s")
        found = within.join(wanted, self._same_key())
        return found.select(
            *(F.col(f"f.{quoted(name)}") for name in self.plan.keys),
            F.col("f." + GONE),
            F.col(f"s.{FILE}"),
            F.col(f"s.{ROW}"),
            applies.alias(_APPLIES),
            (F.lit(False) if gated else F.coalesce(same, F.lit(False))).alias(_SAME_TRANSACTION),
        ).persist()

    def _same_key(self) -> Column:
        """No key is NULL here, and plain equality is what Spark looks up fastest."""
        return reduce(
            and_, (F.col(f"s.{quoted(name)}") == F.col(f"f.{quoted(name)}") for name in self.plan.keys)
        )

    def _written(self, fresh: DataFrame) -> DataFrame:
        values = self.plan.new_row()
        table = self.session.read.format("delta").load(self.uri).schema
        parts = 1 if self.keys.there <= _ROWS_PER_FILE else 2
        rows = fresh.alias("f").select(
            *(values.get(each.name, F.lit(None)).cast(each.dataType).alias(each.name) for each in table)
        )
        return rows.coalesce(parts).sortWithinPartitions(*map(quoted, self.plan.keys))


def _counted(found: DataFrame) -> Matches:
    applies, gone = F.col(_APPLIES), F.col(GONE)
    row = found.agg(
        F.count_if(applies & ~gone),
        F.count_if(applies & gone),
        F.count_if(~applies & ~gone),
        F.count_if(_SAME_TRANSACTION),
    ).collect()[0]
    return Matches(*row)

"""The rows that a merge would take out of silver, counted before it writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.config.models import DeletesLimit
from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.silver.deletes_limit import Removal
from cdc_lakehouse.silver.folding.fold import GONE
from cdc_lakehouse.silver.folding.refold import REFOLDED
from cdc_lakehouse.silver.writing.merge_plan import DELETED, MergePlan

_FEW = 3


@dataclass(frozen=True, slots=True)
class RemovedRows:
    """Counts them, and reads silver only where the changes may remove more than `limit`."""

    session: SparkSession
    uri: str
    changes: DataFrame
    """Folded, one per key."""
    plan: MergePlan
    limit: DeletesLimit

    def count(self, *, deletes: int, causes: Sequence[str]) -> Removal:
        """Return the number of rows that go, or an upper bound that does not exceed the limit.

        `deletes` is the number of changes that may delete one row each; without clearing and refolding no
        other change deletes.
        """
        most = None if self.plan.cleared is not None or self.plan.refolds else deletes
        if most is not None and most <= self.limit.rows:
            return Removal(most, of=most)
        alive = self._alive().count()
        if most is None and self.plan.cleared is None and alive > self.limit.rows:
            most = self.changes.where(GONE).count()
        bound = Removal(alive if most is None else min(alive, most), of=alive)
        if not bound.exceeds(self.limit):
            return bound
        removed = self._removed()
        removal = Removal(removed.count(), of=alive)
        if not removal.exceeds(self.limit):
            return removal
        return Removal(removal.rows, alive, causes=tuple(causes), examples=self._examples(removed))

    def _alive(self) -> DataFrame:
        silver = self.session.read.format("delta").load(self.uri)
        if DELETED not in silver.columns:
            return silver
        return silver.where(~F.coalesce(F.col(DELETED), F.lit(False)))

    def _removed(self) -> DataFrame:
        names = [*self.plan.keys, "_cdc_position", "_cdc_tx_id", GONE]
        names += [REFOLDED] if self.plan.refolds else []
        changes = self.changes.select(*map(quoted, names)).alias("f")
        joined = self._alive().alias("s").join(changes, self.plan.on_key(), "left")
        applies = F.coalesce(self.plan.applies(), F.lit(False))
        goes = applies & F.col(f"f.{GONE}")
        return joined.where(goes | (~applies & self.plan.is_cleared()))

    def _examples(self, removed: DataFrame) -> tuple[str, ...]:
        keys = [F.col(f"s.{quoted(name)}") for name in self.plan.keys]
        return tuple(row["key"] for row in removed.select(key_hash(keys).alias("key")).limit(_FEW).collect())


def key_hash(keys: Sequence[Column]) -> Column:
    """MD5 of the key's columns as text, joined by `|`."""
    return F.md5(F.concat_ws("|", *(key.cast("string") for key in keys)).cast("binary"))

"""Fold what a merge looks at: the events of its work, and whole keys whose past has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.lake.place import Place
from cdc_lakehouse.silver.examine import WorkFacts, unavailable_in
from cdc_lakehouse.silver.folding.carry import Carrier
from cdc_lakehouse.silver.folding.commits import recommitted, with_one_commit
from cdc_lakehouse.silver.folding.fold import folded
from cdc_lakehouse.silver.folding.refold import REFOLDED, but_of_keys, of_keys


@dataclass(frozen=True, slots=True)
class Folded:
    rows: DataFrame
    """One per key."""
    lacking: Sequence[str]
    """Columns that some event did not tell."""
    unfilled: bool
    """Whether a row came from another key whose values bronze does not hold yet."""


@dataclass(frozen=True, slots=True)
class Folding:
    columns: TableColumns
    history: DataFrame
    """All events of bronze."""
    cleared: Place | None
    swept: Place | None = None
    """Rows whose newest event stands before it are gone; it resets no values of others."""

    def of(self, work: DataFrame, facts: WorkFacts, *, keys: DataFrame | None) -> Folded:
        """Changes by `work`; those of `keys` by all of history."""
        if keys is None:
            rows, lacking = self._folded(work, facts.unavailable), facts.unavailable
            return self._filled(rows, lacking) if facts.moves else Folded(rows, lacking, unfilled=False)
        keys = keys.distinct()
        own = of_keys(self.history, keys)
        own = with_one_commit(own, recommitted(own))
        lacking = tuple(sorted({*facts.unavailable, *unavailable_in(own)}))
        others = self._folded(but_of_keys(work, keys), lacking).withColumn(REFOLDED, F.lit(False))
        rows = others.unionByName(self._folded(own, lacking).withColumn(REFOLDED, F.lit(True)))
        return self._filled(rows, lacking) if lacking else Folded(rows, lacking, unfilled=False)

    def _folded(self, events: DataFrame, lacking: Sequence[str]) -> DataFrame:
        return folded(events, self.columns, lacking=lacking, cleared=self.cleared, swept=self.swept)

    def _filled(self, rows: DataFrame, lacking: Sequence[str]) -> Folded:
        carrier = Carrier(self.history, self.columns, lacking=lacking, cleared=self.cleared)
        found = carrier.filled(rows)
        return Folded(found, lacking, unfilled=not carrier.unfilled(found).isEmpty())

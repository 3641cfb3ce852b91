"""The keys of a batch of changes: how many, and between which of them Delta has to look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.silver.folding.fold import GONE
from cdc_lakehouse.silver.writing.literals import between, can_skip_by


@dataclass(frozen=True, slots=True)
class ChangedKeys:
    there: int
    """Keys whose row is there when the changes are applied."""
    has_null: bool
    first: str
    """The first column of the key."""
    lowest: object
    """Of that column; None where no range of it is used."""
    highest: object
    type_: DataType
    """Of that column."""

    @classmethod
    def of(cls, changes: DataFrame, key: Sequence[str]) -> ChangedKeys:
        """Of folded changes; looks at all of them, once."""
        column, type_ = F.col(quoted(key[0])), changes.schema[key[0]].dataType
        ends = [(each(column) if can_skip_by(type_) else F.lit(None)) for each in (F.min, F.max)]
        is_null = reduce(or_, (F.col(quoted(name)).isNull() for name in key))
        row = changes.agg(F.count_if(~F.col(GONE)), F.count_if(is_null), *ends).collect()[0]
        return cls(row[0], row[1] > 0, key[0], row[2], row[3], type_)

    def contain(self, table: str) -> Column:
        """Rows of `table` that may have one of the keys: literals, by which Delta skips files."""
        if self.has_null or self.lowest is None:
            return F.lit(True)
        column = F.col(f"{table}.{quoted(self.first)}")
        return between(column, self.lowest, self.highest, type_=self.type_)

"""The keys of a batch of changes: how many, and between which of them Delta has to look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ByteType, IntegerType, LongType, ShortType, StringType

from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.silver.folding.fold import GONE

_SUFFIXES = {ByteType: "Y", ShortType: "S", IntegerType: "", LongType: "L"}


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
    suffix: str | None = None
    """By which SQL tells a literal of the column's type: Delta skips no file where a cast is in between."""

    @classmethod
    def of(cls, changes: DataFrame, key: Sequence[str]) -> ChangedKeys:
        """Of folded changes; looks at all of them, once."""
        column, type_ = F.col(quoted(key[0])), changes.schema[key[0]].dataType
        suffix = _SUFFIXES.get(type(type_))
        skips = suffix is not None or isinstance(type_, StringType)
        ends = [(each(column) if skips else F.lit(None)) for each in (F.min, F.max)]
        is_null = reduce(or_, (F.col(quoted(name)).isNull() for name in key))
        row = changes.agg(F.count_if(~F.col(GONE)), F.count_if(is_null), *ends).collect()[0]
        return cls(row[0], row[1] > 0, key[0], row[2], row[3], suffix)

    def contain(self, table: str) -> Column:
        """Rows of `table` that may have one of the keys: literals, by which Delta skips files."""
        if self.has_null or self.lowest is None:
            return F.lit(True)
        return F.col(f"{table}.{quoted(self.first)}").between(
            self._literal(self.lowest), self._literal(self.highest)
        )

    def _literal(self, value: object) -> Column:
        return F.lit(value) if self.suffix is None else F.expr(f"{value}{self.suffix}")

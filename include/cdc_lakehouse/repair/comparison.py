"""Compare two contents of a table by key: what a reader would see change if one replaced the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.silver.history.versions import is_same_value
from cdc_lakehouse.silver.schema.evolution import SYSTEM_PREFIX
from cdc_lakehouse.silver.writing.merge_plan import DELETED

_ONLY_LIVE, _ONLY_NEW, _DIFFERENT = "rows_removed", "rows_added", "rows_changed"


@dataclass(frozen=True, slots=True)
class Difference:
    """How a new content of a table differs from the live one. Columns of ours do not count."""

    removed: int = 0
    """Rows that only the live table has."""
    added: int = 0
    changed: int = 0
    columns: Mapping[str, int] = field(default_factory=dict)
    """Column -> how many rows differ in it."""
    examples: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Kind of difference -> MD5 of some keys: payload values enter no log."""
    columns_removed: tuple[str, ...] = ()
    columns_added: tuple[str, ...] = ()
    is_unreadable: bool = False
    """Whether the live table could not be read: then all rows of the new one count as added."""

    @property
    def is_empty(self) -> bool:
        if self.is_unreadable:
            return False
        return not any((self.removed, self.added, self.changed, self.columns_removed, self.columns_added))

    def to_effects(self) -> dict[str, int]:
        return {
            _ONLY_LIVE: self.removed,
            _ONLY_NEW: self.added,
            _DIFFERENT: self.changed,
            "columns_removed": len(self.columns_removed),
            "columns_added": len(self.columns_added),
        }

    def to_sentences(self) -> list[str]:
        sentences = []
        if self.is_unreadable:
            sentences.append("nobody can read the live table: its rows cannot be compared")
        if self.columns_removed:
            sentences.append(f"columns that go: {', '.join(self.columns_removed)}")
        if self.columns_added:
            sentences.append(f"columns that come: {', '.join(self.columns_added)}")
        if self.columns:
            named = ", ".join(f"{name} in {count} row(s)" for name, count in self.columns.items())
            sentences.append(f"values that change: {named}")
        for kind, keys in self.examples.items():
            sentences.append(f"{kind.replace('_', ' ')}, MD5 of some keys: {', '.join(keys)}")
        return sentences


def compare_contents(live: DataFrame, new: DataFrame, *, keys: Sequence[str]) -> Difference:
    """Compare by `keys`, each of which both have. One Spark job."""
    values = [name for name in live.columns if name in new.columns and _is_compared(name, keys)]
    condition = reduce(
        and_, (F.col(f"l.{quoted(key)}").eqNullSafe(F.col(f"n.{quoted(key)}")) for key in keys)
    )
    here, there = live.withColumn("_cdc_here", F.lit(True)), new.withColumn("_cdc_there", F.lit(True))
    joined = here.alias("l").join(there.alias("n"), condition, "full")
    only_live, only_new = F.col("_cdc_there").isNull(), F.col("_cdc_here").isNull()
    differs = {name: ~only_live & ~only_new & ~_is_same(live, name) for name in values}
    kinds = {
        _ONLY_LIVE: only_live,
        _ONLY_NEW: only_new,
        _DIFFERENT: reduce(lambda one, other: one | other, differs.values(), F.lit(False)),
    }
    names = [F.coalesce(F.col(f"l.{quoted(key)}"), F.col(f"n.{quoted(key)}")).cast("string") for key in keys]
    digest = F.md5(F.concat_ws("|", *names))
    counted = {kind: F.count_if(is_one) for kind, is_one in kinds.items()}
    # The lowest and the highest MD5: two examples, however many rows there are.
    shown = {
        f"{end}_{kind}": aggregate(F.when(is_one, digest))
        for kind, is_one in kinds.items()
        for end, aggregate in (("first", F.min), ("last", F.max))
    }
    columns = {f"column_{place}": F.count_if(differs[name]) for place, name in enumerate(values)}
    row = joined.agg(*(value.alias(name) for name, value in {**counted, **shown, **columns}.items())).first()
    if row is None:
        raise RuntimeError("an aggregation without groups returned no row")
    by_column = {name: int(row[f"column_{place}"]) for place, name in enumerate(values)}
    return Difference(
        removed=int(row[_ONLY_LIVE]),
        added=int(row[_ONLY_NEW]),
        changed=int(row[_DIFFERENT]),
        columns={name: count for name, count in by_column.items() if count},
        examples={
            kind: tuple(dict.fromkeys((row[f"first_{kind}"], row[f"last_{kind}"])))
            for kind in kinds
            if row[kind]
        },
        columns_removed=_source_columns(live, besides=new),
        columns_added=_source_columns(new, besides=live),
    )


def _is_compared(name: str, keys: Sequence[str]) -> bool:
    """Columns of ours say how a row came about; only whether it is deleted is part of what it says."""
    return name not in keys and (name == DELETED or not name.startswith(SYSTEM_PREFIX))


def _is_same(live: DataFrame, name: str) -> Column:
    kind = live.schema[name].dataType
    return is_same_value(kind, F.col(f"l.{quoted(name)}"), F.col(f"n.{quoted(name)}"))


def _source_columns(rows: DataFrame, *, besides: DataFrame) -> tuple[str, ...]:
    own = (name for name in rows.columns if not name.startswith(SYSTEM_PREFIX))
    return tuple(name for name in own if name not in besides.columns)

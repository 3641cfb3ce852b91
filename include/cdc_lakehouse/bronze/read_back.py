"""What a commit added, as the table itself tells it: a batch's DataFrame may be used once only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from cdc_lakehouse.lake.coordinates import in_ranges
from cdc_lakehouse.lake.instants import instant
from cdc_lakehouse.lake.ledger import Ranges

BAD_ROWS_SHOWN = 3
_CODE = "decode_error.code"
_IDS = ("key_schema_id", "value_schema_id")
_COORDINATE = ("topic", "partition", "offset")


@dataclass(frozen=True, slots=True)
class BadRow:
    """Where an undecodable record is, and what it claims to be. Never its values."""

    topic: str
    partition: int
    offset: int
    key_schema_id: int | None
    value_schema_id: int | None
    """Null where a GUID names the schema, here and in `Added`."""


@dataclass(frozen=True, slots=True)
class Added:
    rows: int = 0
    out_of_range: int = 0
    """Rows in which a value became NULL because its column cannot hold it."""
    errors_by_code: Mapping[str, int] = field(default_factory=dict)
    bad_rows: Mapping[str, tuple[BadRow, ...]] = field(default_factory=dict)
    """The first few of each code."""
    key_ids: frozenset[int] = frozenset()
    value_ids: frozenset[int] = frozenset()
    seen_through: datetime | None = None

    @classmethod
    def together(cls, batches: Iterable[Added]) -> Added:
        """Of all batches of a run, in their order."""
        all_ = list(batches)
        errors: Counter[str] = Counter()
        for each in all_:
            errors.update(each.errors_by_code)
        bad = {code: [row for each in all_ for row in each.bad_rows.get(code, ())] for code in errors}
        return cls(
            rows=sum(each.rows for each in all_),
            out_of_range=sum(each.out_of_range for each in all_),
            errors_by_code=dict(errors),
            bad_rows={code: tuple(rows[:BAD_ROWS_SHOWN]) for code, rows in bad.items()},
            key_ids=frozenset().union(*(each.key_ids for each in all_)),
            value_ids=frozenset().union(*(each.value_ids for each in all_)),
            seen_through=max((e.seen_through for e in all_ if e.seen_through is not None), default=None),
        )

    def schema_ids(self) -> dict[str, list[int]]:
        """As a report tells them."""
        return {"key": sorted(self.key_ids), "value": sorted(self.value_ids)}

    def bad_rows_by_code(self) -> dict[str, list[dict[str, Any]]]:
        """As a report tells them."""
        return {code: [asdict(row) for row in rows] for code, rows in self.bad_rows.items()}


def read_back(session: SparkSession, ranges: Ranges, *, uri: str, version: int) -> Added:
    rows = session.read.format("delta").option("versionAsOf", version).load(uri).where(in_ranges(ranges))
    counted = (
        rows.groupBy(F.col(_CODE).alias("code"), *_IDS)
        .agg(
            F.count(F.lit(1)).alias("rows"),
            F.count_if(F.col("out_of_range").isNotNull()).alias("out of range"),
            F.max(F.unix_micros("source.ts")).alias("newest"),
        )
        .collect()
    )
    errors: Counter[str] = Counter()
    for row in counted:
        if row["code"] is not None:
            errors[row["code"]] += row["rows"]
    instants = [found for row in counted if (found := instant(row["newest"])) is not None]
    return Added(
        rows=sum(row["rows"] for row in counted),
        out_of_range=sum(row["out of range"] for row in counted),
        errors_by_code=dict(errors),
        bad_rows=_first_bad_rows(rows) if errors else {},
        key_ids=frozenset(row["key_schema_id"] for row in counted) - {None},
        value_ids=frozenset(row["value_schema_id"] for row in counted) - {None},
        seen_through=max(instants, default=None),
    )


def _first_bad_rows(rows: DataFrame) -> dict[str, tuple[BadRow, ...]]:
    """A second look at the table, which only a batch with bad rows pays for."""
    order = F.row_number().over(Window.partitionBy("code").orderBy(*_COORDINATE))
    first = (
        rows.where(F.col(_CODE).isNotNull())
        .select(F.col(_CODE).alias("code"), *_COORDINATE, *_IDS)
        .withColumn("place", order)
        .where(F.col("place") <= BAD_ROWS_SHOWN)
        .orderBy("code", "place")
        .collect()
    )
    found: dict[str, list[BadRow]] = {}
    for row in first:
        bad = BadRow(*(row[name] for name in (*_COORDINATE, *_IDS)))
        found.setdefault(row["code"], []).append(bad)
    return {code: tuple(bad) for code, bad in found.items()}

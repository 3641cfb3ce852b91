"""Batches of changes as bronze holds them: how many, to which keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from bench.merge_rows import row_of  # type: ignore[import-not-found]

Spread = Literal["uniform", "recent"]
_RECENT = 10
"""Recent changes are spread over so many times their number of the newest keys."""
_EVENTS_PER_TRANSACTION = 4


@dataclass(frozen=True, slots=True)
class Batch:
    """Eight updates, a create and a delete of ten events; the creates have keys that count on."""

    changes: int
    spread: Spread
    number: int
    """Of the batch: another one has other keys and values."""

    def rows(self, session: SparkSession, schema: StructType, *, start: int, keys: int) -> DataFrame:
        """As bronze has them; `start` is the first offset, `keys` how many rows the table began with."""
        offsets = session.range(start, start + self.changes, 1, 2).toDF("offset")
        dice = F.pmod(F.xxhash64("offset", F.lit(self.number)), F.lit(10))
        op = F.when(dice == 0, "c").when(dice == 1, "d").otherwise("u")
        key = F.when(op == "c", keys + F.col("offset")).otherwise(self._known_key(keys))
        events = offsets.select("offset", op.alias("op"), key.alias("id"))
        told = self._told(schema)
        return events.select(
            *(_of_type(told.get(field.name), field.dataType, field.name) for field in schema)
        )

    def _known_key(self, keys: int) -> Column:
        drawn = F.xxhash64("offset", F.lit(self.number), F.lit("key"))
        if self.spread == "uniform":
            return F.pmod(drawn, F.lit(keys))
        return keys - 1 - F.pmod(drawn, F.lit(min(keys, _RECENT * self.changes)))

    def _told(self, schema: StructType) -> dict[str, Column]:
        """Column of bronze -> value, where it has one."""
        offset = F.col("offset")
        commit = 1_000 + 1_000 * F.floor(offset / _EVENTS_PER_TRANSACTION)
        one, zero, row = F.lit(1), F.lit(0), 1_000 + offset * 250
        place = {
            "phase": one,
            "commit": commit,
            "streamed": one,
            "row": row,
            "order_in_tx": zero,
            "kind": zero,
        }
        at = F.timestamp_micros(F.lit(1_770_000_000_000_000) + offset)
        source = {"snapshot": F.lit("false"), "ts": at, "tx_id": commit, "lsn": row}
        after = F.struct(*(value.alias(name) for name, value in row_of(F.col("id"), offset + 1).items()))
        return {
            "topic": F.lit("shop.public.orders"),
            "partition": F.lit(0),
            "offset": offset,
            "topic_id": F.lit("topic-1"),
            "kafka_timestamp": at,
            "op": F.col("op"),
            "position": _struct(schema["position"].dataType, place),
            "key": F.struct("id"),
            "after": F.when(F.col("op") != "d", after),
            "source": _struct(schema["source"].dataType, source),
            "ingested_at": at,
            "attempt": F.lit("bench"),
        }


def _struct(type_: DataType, values: Mapping[str, Column]) -> Column:
    """Members that nobody names are NULL."""
    fields = type_.fields if isinstance(type_, StructType) else []
    return F.struct(*(_of_type(values.get(each.name), each.dataType, each.name) for each in fields))


def _of_type(value: Column | None, type_: DataType, name: str) -> Column:
    return (F.lit(None) if value is None else value).cast(type_).alias(name)

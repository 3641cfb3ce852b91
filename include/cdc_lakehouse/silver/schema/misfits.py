"""Records whose values fit no column of the table: they stop silver of it, and this says what changed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from cdc_lakehouse.avro.faults import ValueFault
from cdc_lakehouse.errors import KeySchemaDriftError, SchemaMisfitError

_DETAIL = re.compile(
    r"(?:key|value: before|value: after): (?P<column>.+): value is (?P<now>.+), the column (?P<was>.+)"
)
_OF_A_KEY = "key: "
_MOST = 100
"""Kinds of misfits: a table of so many changed columns is told in part."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """Records that do not fit for the same reason."""

    detail: str
    count: int
    first: str
    """Coordinate."""
    schema_id: int | None
    """Of the first; None where a GUID names it."""

    @property
    def is_of_key(self) -> bool:
        return self.detail.startswith(_OF_A_KEY)

    def told(self) -> str:
        """Column, was and now, as far as the detail has them; of a key without what it was."""
        found = _DETAIL.fullmatch(self.detail)
        what = self.detail.removeprefix("value: ").removeprefix("after: ")
        if found is not None:
            now = in_spark(found["now"])
            change = now if self.is_of_key else f"was {in_spark(found['was'])} and is now {now}"
            what = f"{found['column']} {change}"
        schema = "" if self.schema_id is None else f" with schema {self.schema_id}"
        return f"{what}, first {self.first}{schema}"


def refuse_misfits(rows: DataFrame, *, table: str) -> None:
    """Raises where any of these undecodable rows has values that fit no column."""
    misfits = _misfits(rows)
    of_keys = [each for each in misfits if each.is_of_key]
    if of_keys:
        was = ", ".join(f"{each.name} {each.dataType.simpleString()}" for each in _key_fields(rows))
        raise KeySchemaDriftError(table=table, was=was, now=_together(of_keys))
    if misfits:
        count = sum(each.count for each in misfits)
        raise SchemaMisfitError(table=table, count=count, diff=_together(misfits))


def in_spark(type_: str) -> str:
    """The word of Spark for Arrow's; Arrow's own where it has no short one."""
    try:
        return str(from_arrow_type(pa.type_for_alias(type_)).simpleString())
    except (ValueError, TypeError):
        return type_.replace("decimal128(", "decimal(")


def _misfits(rows: DataFrame) -> list[Misfit]:
    coordinate = F.struct("topic", "partition", "offset")
    found = (
        rows.where(F.col("decode_error.code") == ValueFault.INCOMPATIBLE_SCHEMA.value)
        .groupBy("decode_error.detail")
        .agg(
            F.count(F.lit(1)).alias("count"),
            F.min(coordinate).alias("first"),
            F.min_by(F.struct("key_schema_id", "value_schema_id"), coordinate).alias("schemas"),
        )
        .orderBy("first", "detail")
        .limit(_MOST)
        .collect()
    )
    return [
        Misfit(
            detail=row["detail"],
            count=row["count"],
            first="{topic}/{partition}@{offset}".format(**row["first"].asDict()),
            schema_id=row["schemas"][0 if row["detail"].startswith(_OF_A_KEY) else 1],
        )
        for row in found
    ]


def _key_fields(rows: DataFrame) -> list[StructField]:
    key = rows.schema["key"].dataType
    return list(key.fields) if isinstance(key, StructType) else []


def _together(misfits: Iterable[Misfit]) -> str:
    return "; ".join(each.told() for each in misfits)

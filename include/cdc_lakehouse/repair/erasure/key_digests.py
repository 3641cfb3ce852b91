"""Name rows by the MD5 of their key, the same in bronze, in silver and in what lies beside it.

An erasure knows the keys of a person by nothing else once it is planned: neither its record nor a commit of
a table holds a value. A digest is made of the texts of the values, so that a widened type changes none.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, DateType, DecimalType, FloatType, StructType

from cdc_lakehouse.config.column_choice import Mask
from cdc_lakehouse.config.mask_secret import MaskSecret
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.contract import Job
from cdc_lakehouse.debezium.envelope import SIDES
from cdc_lakehouse.errors import RepairRefusedError
from cdc_lakehouse.lake.bronze_schema import columns_in, has_row
from cdc_lakehouse.lake.coordinates import any_of
from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.silver.columns.masking import hashed
from cdc_lakehouse.silver.columns.shape import plan_shape
from cdc_lakehouse.silver.own_key.key_columns import own_key

_KEY = "key"


@dataclass(frozen=True, slots=True)
class KeyColumn:
    source: str
    """Its name in bronze; that of silver for the column of the topic."""
    silver: str
    mask: Mask | None = None
    is_topic: bool = False


@dataclass(frozen=True, slots=True)
class KeyDigests:
    """How rows of one table are named."""

    columns: tuple[KeyColumn, ...]
    bronze: StructType
    secret: MaskSecret | None = None
    """None where silver hashes no column of the key."""

    @property
    def source_names(self) -> tuple[str, ...]:
        return tuple(column.source for column in self.columns)

    @property
    def is_shaped(self) -> bool:
        """Return whether silver has other values than bronze."""
        return any(column.mask is not None for column in self.columns)

    def type_of(self, source: str) -> DataType:
        """Return the type of a column of the key in bronze."""
        if source not in {column.source for column in self.columns if not column.is_topic}:
            return self.bronze["topic"].dataType
        side = next(name for name in (_KEY, *SIDES) if self._tells_key(name))
        return _struct_of(self.bronze, side)[source].dataType

    def of_bronze(self) -> Column:
        """Return the distinct digests that a row of bronze tells, in its key and in both of its images."""
        return F.array_distinct(F.array_compact(F.array(*self._sides(shaped=False))))

    def pairs_of_bronze(self) -> Column:
        """Return structs (`source`, `silver`) of digests that a row of bronze tells."""
        both = zip(self._sides(shaped=False), self._sides(shaped=True), strict=True)
        pairs = [F.struct(one.alias("source"), other.alias("silver")) for one, other in both]
        return F.filter(F.array(*pairs), lambda pair: pair["source"].isNotNull())

    def of_silver(self, schema: StructType) -> Column:
        """Return the digest of a row of silver, its history or its tombstones."""
        return _digest(
            [(F.col(quoted(column.silver)), schema[column.silver].dataType) for column in self.columns]
        )

    def of_values(self, values: DataFrame) -> DataFrame:
        """Return the digests `source` and `silver` of rows that have one column for each of the key."""
        types = values.schema
        plain = [(F.col(quoted(column.source)), types[column.source].dataType) for column in self.columns]
        shaped = [
            self._shaped(value, type_, column)
            for (value, type_), column in zip(plain, self.columns, strict=True)
        ]
        return values.select(_digest(plain).alias("source"), _digest(shaped).alias("silver"))

    def names_in_bronze(self, digests: Collection[str]) -> Column:
        """Return whether a row of bronze tells one of the keys."""
        return F.coalesce(
            any_of(side.isin(sorted(digests)) for side in self._sides(shaped=False)), F.lit(False)
        )

    def message_key(self) -> Column | None:
        """Return the digest of the whole message key and its topic; None for a table without one."""
        if _KEY not in self.bronze.names:
            return None
        fields = _struct_of(self.bronze, _KEY)
        values = [(F.col(_KEY).getField(field.name), field.dataType) for field in fields]
        values.append((F.col("topic"), self.bronze["topic"].dataType))
        return F.when(F.col(_KEY).isNotNull(), _digest(values))

    def _sides(self, *, shaped: bool) -> list[Column]:
        return [self._side(name, shaped=shaped) for name in (_KEY, *SIDES) if self._tells_key(name)]

    def _tells_key(self, side: str) -> bool:
        if side not in self.bronze.names:
            return False
        names = {column.source for column in self.columns if not column.is_topic}
        return names <= {*_struct_of(self.bronze, side).names}

    def _side(self, name: str, *, shaped: bool) -> Column:
        fields, values = _struct_of(self.bronze, name), []
        for column in self.columns:
            if column.is_topic:
                values.append((F.col("topic"), self.bronze["topic"].dataType))
                continue
            value = F.col(name).getField(column.source), fields[column.source].dataType
            values.append(self._shaped(*value, column) if shaped else value)
        return F.when(F.col(name).isNotNull(), _digest(values))

    def _shaped(self, value: Column, type_: DataType, column: KeyColumn) -> tuple[Column, DataType]:
        if column.mask is not Mask.HASH:
            return value, type_
        if self.secret is None:
            raise TypeError("a key that is hashed needs a secret")
        return hashed(value, type_, self.secret), self.bronze["topic"].dataType


def key_digests(
    table: Table, bronze: StructType, *, named: Sequence[str] | None, secret: MaskSecret | None
) -> KeyDigests:
    """Return how rows of the table are named: by its key, or where it has none by the columns `named`."""
    if not has_row(bronze):
        raise refused(table, "bronze has no decoded row yet")
    columns = columns_in(bronze)
    own = own_key(columns, table)
    names = (
        own.names if own is not None else tuple(column.name for column in columns.key) or tuple(named or ())
    )
    if not names:
        raise refused(table, "it has no key, so `keys` must name values of its columns, and `where` cannot")
    row = {each.source.name: each for each in plan_shape(columns, table.columns, table=table.name).row}
    unfit = [name for name in names if name not in row or row[name].mask is Mask.NULL]
    if unfit:
        raise refused(
            table, f"silver has no values of {', '.join(unfit)}, so its rows cannot be found by them"
        )
    found = tuple(KeyColumn(name, row[name].column.name, row[name].mask) for name in names)
    if table.topic_column is not None:
        found = (*found, KeyColumn(table.topic_column, table.topic_column, is_topic=True))
    return KeyDigests(found, bronze, secret)


def refused(table: Table, problem: str) -> RepairRefusedError:
    return RepairRefusedError(operation=Job.ERASE, table=table.name, problem=problem)


def _struct_of(schema: StructType, name: str) -> StructType:
    kind = schema[name].dataType
    if not isinstance(kind, StructType):
        raise TypeError(f"{name} of a bronze table is {kind}, not a struct")
    return kind


def _digest(values: Sequence[tuple[Column, DataType]]) -> Column:
    """Return NULL where no value is told: the image of a row may have but the columns of another key."""
    is_told = any_of(value.isNotNull() for value, _ in values)
    digest = F.md5(F.to_json(F.array(*(_text(value, type_) for value, type_ in values))).cast("binary"))
    return F.when(is_told, digest)


def _text(value: Column, type_: DataType) -> Column:
    """Return a text that stays the same when the type is widened, as the hash of a masked column does."""
    match type_:
        case BinaryType():
            return F.hex(value)
        case FloatType():
            value = value.cast("double")
        case DateType():
            value = value.cast("timestamp_ntz")
    text = value.cast("string")
    if isinstance(type_, DecimalType) and type_.scale > 0:
        return F.regexp_replace(text, r"\.?0+$", "")
    return text


def is_one_of(digest: Column, digests: Collection[str]) -> Column:
    return F.coalesce(digest.isin(sorted(digests)), F.lit(False))


def collect_texts(rows: DataFrame, name: str, *, most: int) -> set[str]:
    """Return the values of a column, and one more than `most` where there are more."""
    found: list[Any] = rows.select(name).where(F.col(name).isNotNull()).distinct().limit(most + 1).collect()
    return {row[name] for row in found}

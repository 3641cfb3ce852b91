"""Give bronze's rows the columns that silver has: what a shape says, in Spark."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from cdc_lakehouse.config.column_choice import Mask
from cdc_lakehouse.config.mask_secret import MaskSecret
from cdc_lakehouse.debezium.envelope import SIDES
from cdc_lakehouse.silver.columns.masking import hashed
from cdc_lakehouse.silver.columns.shape import Shape, ShapedColumn


def shaped(rows: DataFrame, shape: Shape, *, secret: MaskSecret | None) -> DataFrame:
    """`rows` of bronze whose key, row images and names of untold columns are silver's.

    `secret` may be None where the shape hashes nothing.
    """
    if shape.changes_nothing:
        return rows
    columns = {"key": shape.key, **dict.fromkeys(SIDES, shape.row)}
    structs = {
        name: _struct(rows, name, own, secret=secret) for name, own in columns.items() if name in rows.columns
    }
    return rows.withColumns({**structs, "unavailable": _names(F.col("unavailable"), shape)})


def _struct(
    rows: DataFrame, name: str, columns: Sequence[ShapedColumn], *, secret: MaskSecret | None
) -> Column:
    type_ = rows.schema[name].dataType
    if not isinstance(type_, StructType):
        raise TypeError(f"{name} of a bronze table is {type_}, not a struct")
    value = partial(_value, F.col(name), type_, secret=secret)
    own = [value(each).alias(each.column.name) for each in columns if each.source.name in type_.names]
    return F.when(F.col(name).isNotNull(), F.struct(*own))


def _value(struct: Column, type_: StructType, each: ShapedColumn, *, secret: MaskSecret | None) -> Column:
    own, own_type = struct.getField(each.source.name), type_[each.source.name].dataType
    match each.mask:
        case Mask.NULL:
            return F.lit(None).cast(own_type)
        case Mask.HASH:
            if secret is None:
                raise TypeError("a shape that hashes needs a secret")
            return hashed(own, own_type, secret)
        case _:
            return own


def _names(untold: Column, shape: Shape) -> Column:
    """Without those of columns that have no value of the source in silver."""
    never = {*shape.left_out, *(each.source.name for each in shape.row if each.mask is Mask.NULL)}
    renamed = {
        each.source.name: each.column.name for each in shape.row if each.source.name != each.column.name
    }
    if never:
        untold = F.filter(untold, lambda name: ~name.isin(*never))
    if renamed:
        pairs = F.create_map(*(F.lit(text) for pair in renamed.items() for text in pair))
        untold = F.transform(untold, lambda name: F.coalesce(pairs[name], name))
    return untold

"""Literals of a column's own type: Delta skips no file where a cast stands between the two."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ByteType, DataType, IntegerType, LongType, ShortType, StringType

_SUFFIXES = {ByteType: "Y", ShortType: "S", IntegerType: "", LongType: "L"}
"""By which SQL tells them; a number of Python becomes an INT where it fits."""


def can_skip_by(type_: DataType) -> bool:
    return isinstance(type_, (*_SUFFIXES, StringType))


def between(column: Column, lowest: object, highest: object, *, type_: DataType) -> Column:
    """Ends that are None hold no row."""
    return column.between(_literal(lowest, type_), _literal(highest, type_))


def _literal(value: object, type_: DataType) -> Column:
    suffix = _SUFFIXES.get(type(type_))
    return F.lit(value) if value is None or suffix is None else F.expr(f"{value}{suffix}")

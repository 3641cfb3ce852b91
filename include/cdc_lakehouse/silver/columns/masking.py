"""Keyed hashes of values in Spark. The secret travels inside a function, so no plan and no log shows it."""

from __future__ import annotations

import hmac

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    FloatType,
)

from cdc_lakehouse.config.mask_secret import MaskSecret


def hashed(value: Column, type_: DataType, secret: MaskSecret) -> Column:
    """HMAC-SHA-256 in hexadecimal of the value's text; null of null.

    An expression of Spark's own would hold the secret as a literal, and plans show literals.
    """
    key = secret.key

    def keyed_hash(texts: pa.Array) -> pa.Array:
        digests = (
            None if text is None else hmac.digest(key, text, "sha256").hex() for text in texts.to_pylist()
        )
        return pa.array(digests, pa.string())

    return F.arrow_udf(keyed_hash, "string")(_text(value, type_))


def _text(value: Column, type_: DataType) -> Column:
    """Bytes that stay the same when the type is widened later, and are the same for equal values of tables
    that store them more narrowly or more widely."""
    if isinstance(type_, BinaryType):
        return value
    match type_:
        case FloatType():
            value = value.cast("double")
        case DateType():
            value = value.cast("timestamp_ntz")
    text = value.cast("string")
    if isinstance(type_, DecimalType) and type_.scale > 0:
        text = F.regexp_replace(text, r"\.?0+$", "")
    return text.cast("binary")

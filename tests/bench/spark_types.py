"""The Spark type of an Avro schema, as Spark's own reader derives it."""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

_PRIMITIVES: dict[str, DataType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "bytes": BinaryType(),
    "string": StringType(),
}


def spark_type(node: Any, named: dict[str, DataType] | None = None) -> DataType:
    """Of the types that the measured records have; `KeyError` for others."""
    known: dict[str, DataType] = {} if named is None else named
    if isinstance(node, list):
        (node,) = (branch for branch in node if branch != "null")
    if isinstance(node, str):
        return known[node] if node in known else _PRIMITIVES[node]
    if node.get("logicalType") == "decimal":
        return DecimalType(node["precision"], node["scale"])
    match node["type"]:
        case "record":
            fields = [StructField(each["name"], spark_type(each["type"], known)) for each in node["fields"]]
            known[node["name"]] = StructType(fields)
            return known[node["name"]]
        case "array":
            return ArrayType(spark_type(node["items"], known))
        case "map":
            return MapType(StringType(), spark_type(node["values"], known))
        case inner:
            return spark_type(inner, known)

"""Which rows silver has: a condition on its columns (`filter`, decision 0030).

A change whose row does not satisfy it leaves silver like a deleted one, and its place stays known, so that
no older event brings the row back. A NULL counts as false.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.debezium.operations import IMAGES, Operation
from cdc_lakehouse.errors import InvalidShapeError
from cdc_lakehouse.lake.names import quoted
from cdc_lakehouse.silver.folding.fold import GONE, IMAGE_AT, TOLD_AT
from cdc_lakehouse.silver.folding.place import PLACE
from cdc_lakehouse.silver.folding.row_key import key_of

_OUTSIDE = "_cdc_fold_outside"
"""Column of changes: whether there is a row and it does not satisfy the rule."""
_BUCKET = "_cdc_fold_bucket"
_BUCKETS = 1 << 20
_DATA_EXCEPTION = "22"
"""SQLSTATE class."""
_OF_THE_ROW = ("AttributeReference", "Literal")
"""What the leaves of a condition may be; others ask the clock, the session or another table."""


def filtered(
    changes: DataFrame, rule: str, columns: TableColumns, *, lacking: Sequence[str], keeps_deleted: bool
) -> DataFrame:
    """`changes` among which rows that do not satisfy `rule` are gone.

    With `keeps_deleted` silver keeps their keys and no value: of a row that never satisfied the rule it
    would otherwise show all.
    """
    outside = F.col(IMAGE_AT).isNotNull() & ~F.coalesce(F.expr(rule), F.lit(False))
    replaced = {GONE: F.col(GONE) | outside, _OUTSIDE: outside}
    if keeps_deleted:
        keys = {column.name for column in columns.key}
        for column in columns.row:
            if column.name not in keys:
                replaced[column.name] = F.when(~outside, F.col(quoted(column.name)))
        if lacking:
            # As if an event told that there is nothing, or the merge would take silver's value.
            told = F.struct(*(F.col(IMAGE_AT).alias(name) for name in lacking))
            replaced[TOLD_AT] = F.when(outside, told).otherwise(F.col(TOLD_AT))
    return changes.withColumns(replaced)


def count_outside(filtered_changes: DataFrame) -> int:
    count: int = filtered_changes.where(F.col(_OUTSIDE)).count()
    return count


def keys_with_untold_values(events: DataFrame) -> DataFrame:
    """Their rows must be known in full before the rule can be asked, and silver may not have them."""
    return events.where(F.size("unavailable") > 0).select("key")


def keys_that_moved(events: DataFrame) -> DataFrame:
    """Keys whose rows left values under other keys: silver does not name those that it leaves out."""
    return events.where((F.col("op") == Operation.CREATE) & (F.size("unavailable") > 0)).select("key")


def refuse_filter(changes: DataFrame, rule: str, columns: TableColumns, *, table: str) -> None:
    """Raises where `rule` is no condition on the source's columns of `changes` alone."""
    names = {column.name for column in columns.row}
    schema = StructType([field for field in changes.schema if field.name in names])
    empty = changes.sparkSession.createDataFrame([], schema)
    try:
        condition = _condition(empty.where(rule))
    except (AnalysisException, ParseException) as exc:
        raise InvalidShapeError(table=table, setting="filter", problem=_reason(exc)) from exc
    leaves = _each(condition.collectLeaves())
    foreign = [leaf for leaf in leaves if leaf.getClass().getSimpleName() not in _OF_THE_ROW]
    if foreign or not condition.deterministic():
        what = foreign[0].sql() if foreign else rule
        problem = f"{what} is not told by the row alone: no clock, chance, session or other table"
        raise InvalidShapeError(table=table, setting="filter", problem=problem)


def is_about_values(exc: PySparkException) -> bool:
    """Return whether the rule failed on a value, as a cast of a text that is no number does."""
    return (exc.getSqlState() or "").startswith(_DATA_EXCEPTION)


def unfit_for_filter(
    changes: DataFrame,
    rule: str,
    columns: TableColumns,
    *,
    events: DataFrame,
    table: str,
    cause: PySparkException,
) -> InvalidShapeError:
    """Return the error for a `rule` that fails on a row of `changes`; it names the record, never the value.

    A binary search looks for the row, in about twenty small jobs, after the merge has failed. `events` are
    all events of bronze.
    """
    keys = [quoted(column.name) for column in columns.key]
    rows = changes.where(F.col(IMAGE_AT).isNotNull()).withColumn(
        _BUCKET, F.pmod(F.xxhash64(*keys), F.lit(_BUCKETS))
    )
    rows = rows.localCheckpoint()
    low, high = 0, _BUCKETS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _fails(_between(rows, low, middle), rule) else (middle, high)
    row = _between(rows, low, high)
    images = events.where(F.col("op").isin(*IMAGES))
    of_row = images.join(row.select(key_of([column.name for column in columns.key])), "key")
    record = of_row.orderBy(F.desc(f"{PLACE}.position")).select("topic", "partition", "offset").first()
    where = "a record" if record is None else "{topic}/{partition}@{offset}".format(**record.asDict())
    why = f"a value of {where} does not fit it ({cause.getCondition()})"
    problem = f"{why}; `try_cast` and its like give NULL instead"
    return InvalidShapeError(table=table, setting="filter", problem=problem)


def _between(rows: DataFrame, low: int, high: int) -> DataFrame:
    return rows.where((F.col(_BUCKET) >= low) & (F.col(_BUCKET) < high))


def _fails(rows: DataFrame, rule: str) -> bool:
    try:
        rows.select(F.count_if(F.expr(rule))).collect()
    except PySparkException as exc:
        if is_about_values(exc):
            return True
        raise
    return False


def _condition(frame: DataFrame) -> Any:
    """Spark's own expression, names resolved."""
    return frame._jdf.queryExecution().analyzed().condition()


def _each(sequence: Any) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.size())]


def _reason(exc: AnalysisException | ParseException) -> str:
    return " ".join(str(exc).split("\n\n", 1)[0].split("; line ", 1)[0].split())

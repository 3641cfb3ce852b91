"""Check that bronze returns as many rows as were committed to it: a damaged file must not hide any."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc_lakehouse.errors import BronzeRowsMissingError
from cdc_lakehouse.lake.coordinates import in_spans
from cdc_lakehouse.lake.ledger import first_incarnations
from cdc_lakehouse.lake.spans import in_words, spans_of, together
from cdc_lakehouse.silver.look import MergeTask
from cdc_lakehouse.silver.plan import rows_committed
from cdc_lakehouse.silver.read import work_of


def refuse_missing_rows(task: MergeTask, bronze: DataFrame, *, read: int) -> None:
    """Raise where `bronze` returns another number of rows than its ledgers count.

    `read` is the number of rows that the merge looks at. Rows are counted by themselves only where that is
    not the same set (some were decoded again), and before the error is raised.
    """
    expected = rows_committed(task.held, task.before)
    is_same = not task.redo and not task.read_again
    if expected is None or (is_same and read == expected):
        return
    names = first_incarnations(task.held)
    is_new = work_of(task.held, task.work) | in_spans(task.late, unnamed=names)
    counted = bronze.where(is_new).select(F.count(F.lit(1)).alias("rows")).collect()[0]["rows"]
    if counted != expected:
        ranges = in_words(together(spans_of(task.work), task.late))
        raise BronzeRowsMissingError(table=task.table.name, read=counted, expected=expected, ranges=ranges)

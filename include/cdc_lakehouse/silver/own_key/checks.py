"""What of a merge is asked whether the source keeps what the table's `key` says (decision 0034)."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.place import Place
from cdc_lakehouse.lake.tables import schema_of
from cdc_lakehouse.silver.examine import WorkFacts
from cdc_lakehouse.silver.folding.clearing import cleared_by
from cdc_lakehouse.silver.folding.refold import of_keys
from cdc_lakehouse.silver.look import MergeTask
from cdc_lakehouse.silver.own_key.double_keys import DoubleKeys
from cdc_lakehouse.silver.own_key.key_columns import OwnKey
from cdc_lakehouse.silver.own_key.untold_keys import refuse_untold
from cdc_lakehouse.silver.read import events


def refuse_untold_keys(
    lake: Lake, task: MergeTask, work: DataFrame, own: OwnKey, *, facts: WorkFacts
) -> None:
    """`work` is bronze's, as it came. A history tells what was cleared away, too."""
    cleared = None if task.table.history is not None else _cleared(task, facts)
    refuse_untold(work, own, table=task.table.name, cleared=cleared, archives=lake.archives)


def refuse_double_keys(
    session: SparkSession,
    lake: Lake,
    task: MergeTask,
    rows: DataFrame,
    work: DataFrame,
    *,
    columns: TableColumns,
    facts: WorkFacts,
) -> None:
    """Silver knows what was before the work, unless some of that came late, or it has not all rows."""
    name, new = task.table.name, events(work)
    doubles = DoubleKeys(events(rows), columns.key, _cleared(task, facts), name)
    reached, uri = task.before.applied.reached, lake.silver(name)
    if task.before.seq == 0 or schema_of(session, uri) is None:
        doubles.refuse_among(new)
    elif (
        task.table.filter is None and reached is not None and (facts.lowest is None or facts.lowest > reached)
    ):
        doubles.refuse_behind(session.read.format("delta").load(uri), new)
    else:
        doubles.refuse_among(of_keys(events(rows), new.select("key").distinct()))


def _cleared(task: MergeTask, facts: WorkFacts) -> Place | None:
    before = task.before.applied.with_sweeps(task.sweeps)
    return cleared_by(before, truncated=facts.cleared, ended=facts.ended, held=task.held).gone_before

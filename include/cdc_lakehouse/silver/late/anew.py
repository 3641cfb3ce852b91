"""Which keys a merge computes anew from all that bronze holds: decided once, for silver and for its history.

Those whose past has changed, and those that took values from such a row since; and those whose values were
open and may be told by now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.silver.columns.row_filter import keys_that_moved, keys_with_untold_values
from cdc_lakehouse.silver.examine import WorkFacts
from cdc_lakehouse.silver.folding.refold import incomplete_keys, with_followers
from cdc_lakehouse.silver.late.keys import keys_behind, late_events
from cdc_lakehouse.silver.look import MergeTask


@dataclass(frozen=True, slots=True)
class KeysAnew:
    keys: DataFrame | None
    fills: bool
    """Whether all rows that came from other keys and lack values are among them."""
    refused: int
    """Events of the work that are not newer than what silver has."""


def keys_anew(
    session: SparkSession,
    lake: Lake,
    task: MergeTask,
    columns: TableColumns,
    *,
    facts: WorkFacts,
    held: DataFrame,
    work: DataFrame,
    changed: Sequence[DataFrame],
) -> KeysAnew:
    """`held` are the events of bronze, `work` those of the work; of `changed` keys rows changed behind it.

    An open value may be told where the delete of the old key comes, or the past of any key changes.
    A filter is asked of whole rows, and silver does not have those outside of it.
    """
    late = late_events(session, lake, work, columns, facts=facts, before=task.before)
    changed = [*changed, *([] if late.keys is None else [late.keys])]
    if facts.cleared is not None:
        changed += keys_behind(session, lake, columns, truncated=facts.cleared, before=task.before)
    found = [with_followers(_all_of(changed), held, topic=columns.topic)] if changed else []
    is_filtered = task.table.filter is not None
    fills = task.before.applied.unfilled and (is_filtered or facts.deletes > 0 or bool(changed))
    if is_filtered and facts.unavailable:
        found.append(keys_with_untold_values(work))
    if fills:
        uri = lake.silver(task.table.name)
        found.append(keys_that_moved(held) if is_filtered else incomplete_keys(session, uri, columns))
    # Read now: silver's columns may be widened before silver and history need the keys, and Delta refuses a
    # read of a table that was changed since it was planned.
    keys = _all_of(found).distinct().localCheckpoint() if found else None
    return KeysAnew(keys, fills, late.refused)


def _all_of(keys: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, keys)

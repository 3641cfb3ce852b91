"""What a merge is to write: the events of its work folded, and keys refolded whose past has changed."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.config.mask_secret import MaskSecret
from cdc_lakehouse.config.models import Deletes, Table
from cdc_lakehouse.debezium.columns import TableColumns
from cdc_lakehouse.lake.applied import Applied
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.silver.columns.row_filter import (
    count_outside,
    filtered,
    is_about_values,
    refuse_filter,
    unfit_for_filter,
)
from cdc_lakehouse.silver.examine import WorkFacts
from cdc_lakehouse.silver.folding.clearing import cleared_by, is_overtaken
from cdc_lakehouse.silver.folding.refold import REFOLDED
from cdc_lakehouse.silver.look import MergeTask
from cdc_lakehouse.silver.made_by import settings_of
from cdc_lakehouse.silver.read import events
from cdc_lakehouse.silver.work import Work, work_at
from cdc_lakehouse.silver.work_fold import Folded, Folding
from cdc_lakehouse.silver.writing.tombstones import without_buried

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Changes:
    rows: DataFrame
    """One per key; with the column `refolded` where some were. With a row per event, these."""
    work: Work
    """What they were made of."""
    applied: Applied
    """What silver has applied with them."""
    lacking: Sequence[str] = ()
    """Columns that some event does not tell."""
    fills: Mapping[str, Column] = field(default_factory=dict)
    """Column that this merge adds to silver -> the value that every row of the source got with it."""
    overtaken: bool = False
    """True if a full snapshot ended that removes nothing: newer events than its rows have an older epoch."""
    outside: int | None = None
    """Keys whose rows do not satisfy the table's filter; None of a table that has none."""

    @property
    def columns(self) -> TableColumns:
        return self.work.columns

    @property
    def facts(self) -> WorkFacts:
        return self.work.facts


def changes_of(session: SparkSession, lake: Lake, task: MergeTask, *, secret: MaskSecret | None) -> Changes:
    """Raises for what cannot be applied; nothing is written here."""
    work = work_at(session, lake, task, secret=secret)
    before, facts = task.before.applied, work.facts
    applied = cleared_by(before, truncated=facts.cleared, ended=facts.ended, held=task.held)
    applied = applied.with_sweeps(task.sweeps)
    folding = Folding(work.columns, events(work.rows), cleared=applied.cleared, swept=applied.swept)
    found = folding.of(work.events, facts, keys=work.keys)
    if REFOLDED in found.rows.columns and before.reached is not None:
        kept = without_buried(session, lake.tombstones(task.table.name), found.rows, work.columns)
        found = replace(found, rows=kept)
    overtaken = facts.ended is not None and is_overtaken(task.held, facts.ended)
    if overtaken:
        logger.warning("rows that a snapshot lacks stay", extra={"tx_id": facts.ended})
    reached = max((each for each in (applied.reached, facts.highest) if each is not None), default=None)
    unfilled = found.unfilled or (before.unfilled and not work.fills)
    if work.dropped.nulls:
        found = replace(found, rows=_emptied(found.rows, work.dropped.nulls))
    rows, outside = _inside(task.table, found, work)
    made_by = settings_of(task.table, secret)
    return Changes(
        rows=rows,
        work=work,
        applied=replace(
            applied,
            reached=reached,
            unfilled=unfilled,
            made_by=made_by,
            dropped=work.treated,
            writers=work.writers,
            filled=tuple(sorted(work.added)),
        ),
        lacking=found.lacking,
        overtaken=overtaken,
        outside=outside,
    )


def _emptied(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    nothing = {name: F.lit(None).cast(rows.schema[name].dataType) for name in names if name in rows.columns}
    return rows.withColumns(nothing)


def _inside(table: Table, found: Folded, work: Work) -> tuple[DataFrame, int | None]:
    """With how many are outside: they are counted before they are written, so they are kept meanwhile."""
    rule, columns = table.filter, work.columns
    if rule is None:
        return found.rows, None
    refuse_filter(found.rows, rule, columns, table=table.name)
    keeps_deleted = table.deletes is Deletes.SOFT
    rows = filtered(found.rows, rule, columns, lacking=found.lacking, keeps_deleted=keeps_deleted).persist()
    try:
        return rows, count_outside(rows)
    except BaseException as exc:
        rows.unpersist()
        if isinstance(exc, PySparkException) and is_about_values(exc):
            known = events(work.rows)
            # Without its cause: a traceback of Spark quotes the value.
            raise unfit_for_filter(
                found.rows, rule, columns, events=known, table=table.name, cause=exc
            ) from None
        raise

"""Write the changes of a table in their order: what its history keeps, which keys are deleted, then silver.

Silver's commit is the last and carries the ledger. The others say the same when they are written again, so a
merge that was killed between them is repeated.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.config.models import Deletes, Mode
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.place import Place
from cdc_lakehouse.lake.state import is_there
from cdc_lakehouse.lake.steps import Cause
from cdc_lakehouse.lake.tables import life_of, schema_of
from cdc_lakehouse.silver.append import keys_of
from cdc_lakehouse.silver.changes import Changes
from cdc_lakehouse.silver.deletes_limit import AcceptedDeletes, Removal
from cdc_lakehouse.silver.folding.refold import REFOLDED
from cdc_lakehouse.silver.history.upkeep import keep_history
from cdc_lakehouse.silver.look import MergeTask
from cdc_lakehouse.silver.schema.evolution import SYSTEM_PREFIX
from cdc_lakehouse.silver.writing.append_merge import append
from cdc_lakehouse.silver.writing.changed_keys import ChangedKeys
from cdc_lakehouse.silver.writing.merge import MergeResult, merge
from cdc_lakehouse.silver.writing.merge_plan import MergePlan
from cdc_lakehouse.silver.writing.removed_rows import RemovedRows
from cdc_lakehouse.silver.writing.replace_rows import MOST_CHANGES, replace_rows, suits
from cdc_lakehouse.silver.writing.tombstones import bury


def apply_changes(
    session: SparkSession,
    application: Application,
    task: MergeTask,
    changes: Changes,
    *,
    rows: DataFrame,
    ledger: Ledger,
    accepted: AcceptedDeletes | None,
) -> tuple[MergeResult, Ledger]:
    """Write `rows`, those of `changes` with all columns of silver. A second call is refused as superseded.

    `accepted` is the decision that lets pass what they take out of silver. Returns the ledger with the
    decision that the merge needed, if it needed one.
    """
    lake, table = application.lake, task.table
    uri = lake.silver(table.name)
    if task.mode is Mode.APPEND:
        return append(session, uri, rows=rows, keys=keys_of(changes.columns), ledger=ledger), ledger
    plan = plan_of(task, changes, rows)
    cause = Cause(
        table.name,
        ledger.seq,
        behind=task.before.attempt,
        attempt=application.attempt,
        life=life_of(uri),
        made_by=changes.applied.made_by,
    )
    decisions = keep_history(session, application, task, changes, cause=cause, accepted=accepted)
    ledger = replace(ledger, decisions={**decisions, **ledger.decisions})
    tombstones = lake.tombstones(table.name)
    is_hard = table.deletes is Deletes.HARD
    if task.buries_again or (is_hard and (cause.silver == 1 or _may_delete(task, changes, plan))):
        bury(session, tombstones, changes.rows, changes.columns, cause=cause, silver=uri)
    elif cause.silver == 1 and is_there(tombstones):
        # Of a time when it did not keep deleted rows, in another life.
        bury(session, tombstones, changes.rows.limit(0), changes.columns, cause=cause, silver=uri)
    is_certain = _is_certain(task, changes, plan)
    return _applied(session, uri, rows, plan=plan, ledger=ledger, is_certain=is_certain), ledger


def removal_of(
    session: SparkSession, application: Application, task: MergeTask, changes: Changes, *, rows: DataFrame
) -> Removal:
    """Return what the merge would take out of silver; nothing is written here."""
    if task.mode is Mode.APPEND:
        return Removal(0, of=0)
    plan, facts = plan_of(task, changes, rows), changes.facts
    is_snapshot = plan.cleared is not None and plan.cleared == Place.beginning_of(plan.cleared.position[0])
    causes = {
        "a snapshot by `resync` that lacks them": task.sweeps,
        "a snapshot that lacks them": is_snapshot,
        f"{facts.truncates} TRUNCATE": facts.truncates,
        f"{facts.deletes} deletes": facts.deletes,
        f"{changes.outside} rows outside `filter`": changes.outside,
    }
    removed = RemovedRows(session, application.lake.silver(task.table.name), rows, plan, task.brake.limit)
    return removed.count(
        deletes=facts.deletes + (changes.outside or 0),
        causes=[cause for cause, is_one in causes.items() if is_one],
    )


def plan_of(task: MergeTask, changes: Changes, rows: DataFrame) -> MergePlan:
    """Return what the merge does to which row of silver."""
    cleared = changes.applied.gone_before
    is_cleared_already = cleared == task.before.applied.gone_before and not changes.work.clears_again
    return MergePlan(
        keys=keys_of(changes.columns),
        names=tuple(name for name in rows.columns if not name.startswith(SYSTEM_PREFIX)),
        deletes=task.table.deletes,
        lacking=changes.lacking,
        cleared=None if is_cleared_already else cleared,
        refolds=REFOLDED in rows.columns,
        dropped=frozenset(changes.work.dropped.treated),
        emptied=changes.work.dropped.emptied if task.before.seq else (),
        filled=changes.fills,
        events=changes.facts.events,
    )


def _may_delete(task: MergeTask, changes: Changes, plan: MergePlan) -> bool:
    return bool(plan.refolds or changes.facts.deletes or task.table.filter)


def _is_certain(task: MergeTask, changes: Changes, plan: MergePlan) -> bool:
    """Whether no event has the commit of one that silver has applied, or an older one."""
    before = task.before.applied
    return not plan.refolds and before.reached is not None and not changes.facts.may_be_old(before)


def _applied(
    session: SparkSession, uri: str, rows: DataFrame, *, plan: MergePlan, ledger: Ledger, is_certain: bool
) -> MergeResult:
    table = schema_of(session, uri)
    if plan.events > MOST_CHANGES or table is None:
        return merge(session, uri, changes=rows, plan=plan, ledger=ledger)
    if suits(plan, rows, table):
        return replace_rows(session, uri, changes=rows, plan=plan, ledger=ledger, certain=is_certain)
    keys = ChangedKeys.of(rows, plan.keys)
    return merge(session, uri, changes=rows, plan=plan, ledger=ledger, keys=keys)

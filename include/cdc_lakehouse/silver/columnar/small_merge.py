"""Merge a table that has little news without a Spark job: read, fold and write Arrow columns, then commit.

Most merges of most tables are like this: new events of known columns, each newer than the row that silver
has. Whatever asks for more is left to the general merge: what came late, was decoded again or could not be,
what is about all rows at once, and settings that change columns, keys or rows.

One record, from bronze to silver: an update of key 7 is among the work (`bronze_rows`). It can be applied
like any other (`event_facts`). Silver has key 7 in row 12 of a file (`stored_rows`), at an older place. The
fold says what the row is now. It is written to a new file, row 12 gets into the deletion vector of the old
one (`file_changes`), and both are in the commit that states the new ledger.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.contract import TableResult
from cdc_lakehouse.errors import SupersededError
from cdc_lakehouse.lake.delta_transaction import DeltaTransaction
from cdc_lakehouse.lake.ledger import APPLICATION_ID, Ledger
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.rows import nullable_schema
from cdc_lakehouse.lake.snapshot import newest_snapshot
from cdc_lakehouse.lake.steps import Cause, commit_step_files, standing_of
from cdc_lakehouse.lake.tables import life_of
from cdc_lakehouse.lake.transaction import commit
from cdc_lakehouse.silver.claiming import claim_beside
from cdc_lakehouse.silver.columnar.file_changes import delete_rows, write_rows
from cdc_lakehouse.silver.columnar.news import GeneralMergeNeededError, News, read_news
from cdc_lakehouse.silver.columnar.news_fold import HistoryChanges, RowChanges, fold_news
from cdc_lakehouse.silver.examine import WorkFacts
from cdc_lakehouse.silver.history.upkeep import RULES
from cdc_lakehouse.silver.look import MergeTask
from cdc_lakehouse.silver.plan import next_ledger, standing_on
from cdc_lakehouse.silver.unchanged import refuse_changed

logger = logging.getLogger(__name__)


def merge_small(application: Application, task: MergeTask) -> TableResult | None:
    """Carry out what a look has found; None, with nothing written, where the general merge has to.

    A second call with the same task is refused as superseded.
    """
    started = time.monotonic()
    try:
        news = read_news(application.lake, task)
        changes = fold_news(application.lake, task, news)
        cause = _cause_of(application, task, changes)
        _refuse_other_tombstones(application.lake, task, changes, cause)
    except GeneralMergeNeededError as exc:
        logger.debug("the general merge is needed", extra={"reason": str(exc)})
        return None
    refuse_changed(application, task)
    ledger, claim = plan_ledger(application, task, news)
    read = time.monotonic()
    _commit_changes(application, task, changes, ledger, cause=cause)
    seconds = {"read": round(read - started, 3), "merge": round(time.monotonic() - read, 3)}
    logger.info("merge committed", extra={"seq": ledger.seq, "events": news.facts.events})
    return replace(_to_result(task, news.facts, changes, ledger, seconds=seconds), **claim)


def plan_ledger(application: Application, task: MergeTask, news: News) -> tuple[Ledger, Mapping[str, Any]]:
    """Return silver's next ledger, and the fields of the result that say up to when it is complete."""
    before, seen = task.before.applied, news.facts.seen_through
    reached = max((each for each in (before.reached, news.facts.highest) if each is not None), default=None)
    applied = replace(before, reached=reached, follows=task.follows, writers=news.unsent.writers, filled=())
    ledger = next_ledger(
        task.before,
        task.held,
        task.work,
        attempt=application.attempt,
        seen_through=None if seen is None else seen.isoformat(),
        applied=applied,
    )
    after = standing_on(task.held, ledger, version=task.stated, undecodable={}, read_again={})
    claim = claim_beside(
        application.lake,
        after,
        bronze=task.held,
        confirmations=task.confirmations,
        counted=task.open_cases,
    )
    return replace(after, valid_through=claim.valid, decisions={}), claim.told()


def _cause_of(application: Application, task: MergeTask, changes: RowChanges) -> Cause:
    return Cause(
        task.table.name,
        task.before.seq + 1,
        behind=task.before.attempt,
        attempt=application.attempt,
        life=life_of(changes.silver.uri),
        made_by=task.before.applied.made_by,
    )


def _refuse_other_tombstones(lake: Lake, task: MergeTask, changes: RowChanges, cause: Cause) -> None:
    """Raise unless the tombstones are of this life of silver and have the columns of new ones."""
    if not len(changes.tombstones):
        return
    uri = lake.tombstones(task.table.name)
    snapshot = newest_snapshot(uri)
    if snapshot is None or standing_of(uri).life != cause.life:
        raise GeneralMergeNeededError("tombstones of another life of silver")
    existing = {field.name: field.type for field in nullable_schema(snapshot)}
    if existing != {field.name: field.type for field in changes.tombstones.schema}:
        raise GeneralMergeNeededError("tombstones with other columns")


def _commit_changes(
    application: Application, task: MergeTask, changes: RowChanges, ledger: Ledger, *, cause: Cause
) -> None:
    """Commit history and tombstones, then silver with its ledger.

    Both say the same when they are written again, so a merge that was killed between is repeated.
    """
    if changes.history is not None:
        _keep_history(application, task, changes.history, cause=cause)
    if len(changes.tombstones):
        _write_tombstones(application, task, changes, cause=cause)
    uri, session = changes.silver.uri, application.spark.isolated(small=True)
    files = write_rows(uri, changes.rows, keys=changes.keys, attempt=application.attempt)
    removals = delete_rows(uri, changes.found)

    def state_ledger() -> None:
        transaction = DeltaTransaction.start(session, uri)
        step = transaction.versions_of([APPLICATION_ID])[APPLICATION_ID] or 0
        if step != ledger.seq - 1 or transaction.read_version != changes.silver.version:
            raise SupersededError(table=ledger.table, seq=ledger.seq - 1, attempt=ledger.attempt)
        ids = {APPLICATION_ID: ledger.seq}
        transaction.commit(files, ids, metadata=ledger.to_json(), step=ledger.seq, more=removals)

    commit(state_ledger, uri=uri, ledger=ledger)


def _keep_history(
    application: Application, task: MergeTask, history: HistoryChanges, *, cause: Cause
) -> None:
    uri, keys = application.lake.history(task.table.name), history.keys
    files = write_rows(uri, history.rows, keys=keys, attempt=application.attempt)
    removals, session = delete_rows(uri, history.found), application.spark.isolated(small=True)
    cause = replace(cause, rules=RULES)
    commit_step_files(session, uri, files, removals=removals, read=history.read, cause=cause)


def _write_tombstones(
    application: Application, task: MergeTask, changes: RowChanges, *, cause: Cause
) -> None:
    """Commit the places at which keys were deleted."""
    uri = application.lake.tombstones(task.table.name)
    read, session = standing_of(uri), application.spark.isolated(small=True)
    files = write_rows(uri, changes.tombstones, keys=changes.keys, attempt=application.attempt)
    commit_step_files(session, uri, files, read=read, cause=cause)


def _to_result(
    task: MergeTask, facts: WorkFacts, changes: RowChanges, ledger: Ledger, *, seconds: Mapping[str, float]
) -> TableResult:
    return task.advanced(
        ledger,
        seen_through=facts.seen_through,
        version=changes.silver.version + 1,
        rows=changes.inserted + changes.updated + changes.deleted,
        counts={
            "read": facts.read,
            "events": facts.events,
            "ignored": facts.ignored,
            **dict.fromkeys(("undecodable", "truncates", "parked", "refused", "decoded_again"), 0),
            "late_offsets": 0,
            "rows_inserted": changes.inserted,
            "rows_updated": changes.updated,
            "rows_deleted": changes.deleted,
        },
        seconds=seconds,
    )

"""Keep the history of a table: the versions of its rows, each from where to where it stood."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.application.signing import signed
from cdc_lakehouse.config.history_choice import History
from cdc_lakehouse.errors import SupersededError
from cdc_lakehouse.lake.state import read_state
from cdc_lakehouse.lake.steps import Cause, Standing, commit_step, standing_of
from cdc_lakehouse.lake.tables import life_of, schema_of
from cdc_lakehouse.silver.changes import Changes
from cdc_lakehouse.silver.deletes_limit import AcceptedDeletes
from cdc_lakehouse.silver.history.cutting import Cutting
from cdc_lakehouse.silver.history.merge import differing_versions, merge_history
from cdc_lakehouse.silver.history.rows import with_corrected_times
from cdc_lakehouse.silver.history.schema import follow_silver, history_schema, refuse_unknown
from cdc_lakehouse.silver.look import MergeTask
from cdc_lakehouse.silver.schema.filling import with_fills

logger = logging.getLogger(__name__)
RULES = 2
"""Number of the rules that versions are cut by. Under rules 1 times could overlap, and a snapshot began a new
version of every row."""


def keep_history(
    session: SparkSession,
    application: Application,
    task: MergeTask,
    changes: Changes,
    *,
    cause: Cause,
    accepted: AcceptedDeletes | None,
) -> dict[str, Any]:
    """Write the versions that follow from the merge, before silver is written. A second call writes the same.

    All of the history is recut from bronze if it is new, if it missed a step of silver, if older rules made
    it, or if silver was rebuilt. It may then end no more rows than `deletes_limit` allows, unless a person
    `accepted` what the merge removes. Returns the decision that the merge needs, signed. It may be that of a
    try that wrote the history and was killed before it wrote silver.
    """
    planned = _plan_cutting(session, application, task, changes, life=cause.life)
    if planned is None:
        return _signed(accepted, application)
    read, cutting = planned
    is_repeated = (read.silver, read.behind, read.life) == (cause.silver, cause.behind, cause.life)
    uri = application.lake.history(task.table.name)
    rows = cutting.rows().persist()
    try:
        if cutting.whole and accepted is None:
            accepted = task.brake.refuse(cutting.removal(rows))
        decisions = _signed(accepted, application) or (dict(read.decisions) if is_repeated else {})
        commit_step(
            lambda: merge_history(session, uri, rows, keys=cutting.keys, fills=changes.fills),
            session=session,
            uri=uri,
            read=read,
            cause=replace(cause, rules=RULES, decisions=decisions),
        )
    finally:
        rows.unpersist()
    logger.info("history committed", extra={"seq": cause.silver, "cut_anew": cutting.whole})
    return decisions


def _signed(accepted: AcceptedDeletes | None, application: Application) -> dict[str, Any]:
    return {} if accepted is None else signed(accepted.document(), application.request)


def changes_history(
    session: SparkSession, application: Application, task: MergeTask, changes: Changes
) -> bool:
    """Return whether `keep_history` would write anything but what the history has."""
    life = life_of(application.lake.silver(task.table.name))
    planned = _plan_cutting(session, application, task, changes, life=life)
    if planned is None:
        return False
    read, cutting = planned
    if cutting.whole or cutting.corrected is not None:
        return True
    existing = _at(session, application.lake.history(task.table.name), read.version)
    return not differing_versions(existing, cutting.rows(), keys=cutting.keys).isEmpty()


def _plan_cutting(
    session: SparkSession, application: Application, task: MergeTask, changes: Changes, *, life: str
) -> tuple[Standing, Cutting] | None:
    """Return where the history stands and how the merge cuts it; None for a table that keeps none."""
    option, lake, name = task.table.history, application.lake, task.table.name
    if option is None:
        return None
    schema, uri = _schema(session, application, task, changes, option), lake.history(name)
    if schema is None:
        return None
    read = standing_of(uri)
    history, changed = _at(session, uri, read.version), None
    if read.silver is not None and read.rules < RULES:
        history, changed = with_corrected_times(history, [column.name for column in changes.columns.key])
    cutting = Cutting(
        changes=changes,
        before=replace(task.before.applied, cleared=None)
        if changes.work.clears_again
        else task.before.applied,
        schema=schema,
        tracked=option.columns,
        history=with_fills(history, changes.fills),
        silver=with_fills(_silver(session, application, task), changes.fills),
        whole=read.life != life or read.rules < RULES or _has_missed(read, task),
        corrected=None if changed is None else with_fills(changed, changes.fills),
        keeps_told=task.recomputed is not None and bool(task.held.gaps()),
    )
    return read, cutting


def _schema(
    session: SparkSession, application: Application, task: MergeTask, changes: Changes, option: History
) -> StructType | None:
    """Give the history all columns of silver and return its schema; None while there is no silver."""
    lake, name = application.lake, task.table.name
    silver = schema_of(session, lake.silver(name))
    if silver is None:
        return None
    wanted, vectors = history_schema(silver), task.table.deletion_vectors
    refuse_unknown(option.columns, wanted, table=name)
    return follow_silver(
        session, lake.history(name), wanted=wanted, columns=changes.columns, table=name, vectors=vectors
    )


def _has_missed(read: Standing, task: MergeTask) -> bool:
    """Unless its newest step was written by who made silver's, or for the next one by who ended before that.

    Another attempt may have come in between, with a step of its own.
    """
    of = {task.before.seq: read.attempt, task.before.seq + 1: read.behind}
    return read.silver is None or of.get(read.silver) != task.before.attempt


def _silver(session: SparkSession, application: Application, task: MergeTask) -> DataFrame:
    """As the step before left it: later ones belong to another attempt."""
    uri = application.lake.silver(task.table.name)
    state = read_state(uri, table=task.table.name)
    if state is None or state.seq != task.before.seq:
        raise SupersededError(table=task.table.name, seq=task.before.seq, attempt=application.attempt)
    return _at(session, uri, state.version)


def _at(session: SparkSession, uri: str, version: int) -> DataFrame:
    return session.read.format("delta").option("versionAsOf", version).load(uri)

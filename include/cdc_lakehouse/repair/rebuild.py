"""Rebuild silver and history of a table from bronze, beside the live one, and put them in its place.

The plan computes the whole table under `_ops/<pipeline>/shadows` with the code of a merge and compares it
with the live one. Carrying it out brings the second table up to date, compares again, and replaces the
contents.
`undo` names an earlier rebuild, whose old contents come back.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.config.models import DeletesLimit, Table
from cdc_lakehouse.contract import Job
from cdc_lakehouse.errors import (
    LogDamagedError,
    NotSupportedYetError,
    RepairNotVerifiedError,
    RepairRefusedError,
)
from cdc_lakehouse.lake.damage import files_of, heal_torn_log, refuse_missing_files, set_log_aside
from cdc_lakehouse.lake.filesystem import is_object_store
from cdc_lakehouse.lake.ledger import Ledger
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.lake.newest_ledger import ledger_at
from cdc_lakehouse.lake.state import TableState, is_there, look_into, read_state
from cdc_lakehouse.lake.steps import standing_of
from cdc_lakehouse.lake.tables import create_if_missing
from cdc_lakehouse.repair.comparison import Difference
from cdc_lakehouse.repair.contents import (
    compare_silver,
    count_versions,
    difference_to,
    effects_in_words,
    is_unusable,
    key_of_silver,
    plan_changed,
    read_versions,
    refuse_other_effects,
    uri_of,
)
from cdc_lakehouse.repair.folders import has_first_commit
from cdc_lakehouse.repair.operation import Outcome
from cdc_lakehouse.repair.plan import TablePlan
from cdc_lakehouse.repair.records import RepairRecord, begun_repairs, newest_erasure, read_record
from cdc_lakehouse.repair.replacement import (
    Contents,
    LiveTable,
    read_table,
    replace_contents,
    sweeps_of,
    version_that_carried_out,
)
from cdc_lakehouse.repair.shadows import delete_old_shadows, delete_shadow
from cdc_lakehouse.silver.history.upkeep import RULES
from cdc_lakehouse.silver.look import MergeTask, look_at
from cdc_lakehouse.silver.schema.table_schema import silver_properties
from cdc_lakehouse.silver.table_merge import merge_table

logger = logging.getLogger(__name__)

UNDO = "undo"


class Rebuild:
    job = Job.REBUILD
    options = frozenset({UNDO})

    def plan(self, application: Application, table: Table) -> TablePlan:
        live = _read_live(application.lake, table)
        undone = application.request.options.get(UNDO)
        if undone:
            return _plan_undo(application, table, live, undone=undone)
        delete_old_shadows(application.lake, table.name)
        shadow = replace(application.lake, shadow=application.attempt)
        ledger = _computed(application, table, shadow)
        session = application.spark.isolated()
        new = _contents_at(session, shadow, table, ledger)
        difference = difference_to(session, application.lake, table, live, new)
        basis = {**_basis(application.lake, table, live), "shadow": application.attempt}
        return TablePlan(
            operation=self.job,
            pipeline=application.pipeline.name,
            table=table.name,
            options={},
            basis=basis,
            effects={**difference.to_effects(), **count_versions(session, application.lake, table, new)},
            summary=_summary(difference, live),
            details=(*difference.to_sentences(), *_warnings(application, table, live, ledger)),
            is_needed=not difference.is_empty or is_unusable(live),
        )

    def facts_before(self, application: Application, table: Table) -> Mapping[str, Any]:
        """Return the versions whose contents are replaced: an undo brings them back."""
        lake, live = application.lake, _read_live(application.lake, table)
        versions = {}
        if live is not None:
            versions["silver"] = live.version if live.stated is None else live.stated
        history, tombstones = lake.history(table.name), lake.tombstones(table.name)
        facts: dict[str, Any] = {"before": versions, "rules": RULES}
        if is_there(history):
            standing = standing_of(history)
            versions["history"], facts["rules"] = standing.version, standing.rules
        if is_there(tombstones):
            versions["tombstones"] = standing_of(tombstones).version
        return facts

    def act(self, application: Application, table: Table, plan: TablePlan) -> Outcome:
        lake, uri = application.lake, application.lake.silver(table.name)
        live = _read_live(lake, table, planned=plan)
        carried_out = None if live is None else version_that_carried_out(uri, plan.digest)
        if carried_out is not None:
            return Outcome(facts={"after": {"silver": carried_out}}, summary="carried out by an earlier try")
        if (live.life if live is not None else None) != plan.basis["life"] and not _is_new(live):
            raise plan_changed(plan, "silver was made again in the meantime")
        session = application.spark.isolated()
        undone = plan.options.get(UNDO)
        if undone:
            contents = _contents_before(session, lake, table, undone)
        else:
            shadow = replace(lake, shadow=plan.basis["shadow"])
            ledger = _computed(application, table, shadow)
            contents = _contents_at(session, shadow, table, ledger)
        difference = difference_to(session, lake, table, live, contents)
        if not undone:
            refuse_other_effects(plan, difference, limit=table.deletes_limit.rows)
        versions = replace_contents(
            session,
            LiveTable(
                lake, table.name, live or _make_again(session, lake, table, contents), table.deletion_vectors
            ),
            contents,
            attempt=application.attempt,
            decision={"operation": plan.operation, "plan": plan.digest},
        )
        return Outcome(
            counts=difference.to_effects(),
            facts={"after": versions},
            summary=f"silver has new contents as of version {versions['silver']}",
        )

    def verify(self, application: Application, table: Table, record: RepairRecord) -> Outcome:
        """Compare the version that was committed with the table that was computed, then delete that one."""
        plan, lake = record.plan, application.lake
        shadow = plan.basis.get("shadow")
        if shadow is None:
            return Outcome(summary="nothing is left to compare with")
        uri = replace(lake, shadow=shadow).silver(table.name)
        if not has_first_commit(uri):
            delete_shadow(lake, table.name, shadow)  # a verification that was killed has left the rest of it
            return Outcome(summary="nothing is left to compare with")
        session = application.spark.isolated()
        version = record.facts["after"]["silver"]
        committed = read_table(session, lake.silver(table.name), version=version)
        computed = read_table(session, uri)
        difference = compare_silver(key_of_silver(lake, table), committed, computed)
        if not difference.is_empty:
            kinds = ", ".join(f"{count} {name}" for name, count in difference.to_effects().items() if count)
            raise RepairNotVerifiedError(
                operation=plan.operation, table=table.name, digest=plan.digest, problem=kinds
            )
        delete_shadow(lake, table.name, shadow)
        return Outcome(counts={"rows_verified": committed.count()}, summary="silver is what bronze gives")


def _read_live(lake: Lake, table: Table, *, planned: TablePlan | None = None) -> TableState | None:
    """Return the silver that readers have; None where its log is damaged, so that nobody reads it.

    Raise where there is none, unless a `planned` repair has set its damaged log aside already.
    """
    heal_torn_log(lake.silver(table.name), table=table.name)
    try:
        state = look_into(lake.silver(table.name), table=table.name)
    except LogDamagedError:
        if is_object_store(lake.silver(table.name)):
            raise NotSupportedYetError(feature="a rebuild of a damaged log in a bucket") from None
        return None
    if state is None and (planned is None or planned.basis["life"] is not None):
        problem = "it has no silver; the next run of the pipeline computes it from bronze"
        raise RepairRefusedError(operation=Job.REBUILD, table=table.name, problem=problem)
    return state


def _is_new(live: TableState | None) -> bool:
    """Return whether silver was only made, and holds nothing yet."""
    return live is not None and live.ledger is None and not live.size_bytes and live.step is None


def _make_again(session: SparkSession, lake: Lake, table: Table, contents: Contents) -> TableState:
    """Set a damaged log aside and make an empty silver; a second call changes nothing."""
    uri = lake.silver(table.name)
    set_log_aside(uri, table=table.name)
    properties = silver_properties(vectors=table.deletion_vectors)
    create_if_missing(session, uri, schema=contents.silver.schema, properties=properties)
    state = look_into(uri, table=table.name)
    if state is None:
        raise RuntimeError(f"silver of {table.name} was made and is not there")
    return state


def _basis(lake: Lake, table: Table, live: TableState | None) -> dict[str, Any]:
    life = None if live is None else live.life
    return {"life": life, "repairs": begun_repairs(lake, table.name)}


def _computed(application: Application, table: Table, shadow: Lake) -> Ledger:
    """Merge all that bronze holds into the second silver, and return its ledger; a second call goes on.

    Sweeps of the live silver are part of what it is made of: bronze does not tell them.
    """
    shadowed = replace(application, lake=shadow)
    # Nobody loses a row of a table that is only computed: the brake is that of the repair.
    table = table.model_copy(update={"deletes_limit": DeletesLimit(share=1)})
    sweeps = sweeps_of(application.lake, table.name)
    task = look_at(shadowed, table, sweeps=sweeps)
    while isinstance(task, MergeTask):
        merge_table(shadowed, task)
        task = look_at(shadowed, table, sweeps=sweeps)
    state = read_state(shadow.silver(table.name), table=table.name)
    if state is None or state.ledger is None:
        problem = "bronze has no rows from which silver could be computed"
        raise RepairRefusedError(operation=Job.REBUILD, table=table.name, problem=problem)
    return state.ledger


def _contents_at(session: SparkSession, lake: Lake, table: Table, ledger: Ledger) -> Contents:
    history, tombstones = lake.history(table.name), lake.tombstones(table.name)
    return Contents(
        silver=read_table(session, lake.silver(table.name)),
        ledger=ledger,
        history=read_table(session, history) if is_there(history) else None,
        tombstones=read_table(session, tombstones) if is_there(tombstones) else None,
    )


def _contents_before(session: SparkSession, lake: Lake, table: Table, digest: str) -> Contents:
    """Return what a rebuild has replaced. Raise where VACUUM has taken a file of it."""
    record = read_record(lake, table.name, digest, operation=Job.REBUILD)
    if not record.is_done:
        raise _cannot_undo(table, f"the plan {digest} was not carried out")
    erased_at = newest_erasure(lake, table.name)
    if erased_at is not None and record.done_at and erased_at > datetime.fromisoformat(record.done_at):
        raise _cannot_undo(table, "keys were erased from the table since, and they would come back")
    versions = record.facts["before"]
    if "silver" not in versions:
        raise _cannot_undo(table, "nobody could read the table that the rebuild replaced")
    for name, version in versions.items():
        uri = uri_of(lake, table.name, name)
        refuse_missing_files(uri, files_of(uri, version=version), table=table.name)
    ledger = ledger_at(lake.silver(table.name), versions["silver"], table=table.name)
    if ledger is None:
        raise _cannot_undo(table, f"version {versions['silver']} of silver is not in its log any more")
    return read_versions(session, lake, table.name, versions, ledger=ledger, rules=record.facts["rules"])


def _plan_undo(application: Application, table: Table, live: TableState | None, *, undone: str) -> TablePlan:
    session = application.spark.isolated()
    contents = _contents_before(session, application.lake, table, undone)
    difference = difference_to(session, application.lake, table, live, contents)
    return TablePlan(
        operation=Job.REBUILD,
        pipeline=application.pipeline.name,
        table=table.name,
        options={UNDO: undone},
        basis=_basis(application.lake, table, live),
        effects=difference.to_effects(),
        summary=f"brings back what the rebuild {undone} replaced: {effects_in_words(difference)}",
        details=(*difference.to_sentences(), "The next merge applies again what bronze got since then."),
    )


def _summary(difference: Difference, live: TableState | None) -> str:
    if difference.is_empty and not is_unusable(live):
        return "silver is what bronze gives: there is nothing to rebuild"
    cannot = ", and nobody can read the one that is there" if difference.is_unreadable else ""
    return f"silver is replaced by what bronze gives{cannot}: {effects_in_words(difference)}"


def _warnings(application: Application, table: Table, live: TableState | None, new: Ledger) -> list[str]:
    """Return what a person should know beside the difference."""
    days = application.pipeline.maintenance.vacuum_retention
    warnings = [f"The old contents stay for {days} (vacuum_retention): `undo` with this plan's digest."]
    if live is None or live.ledger is None or _ends_of(live.ledger) != _ends_of(new):
        warnings.append("Silver is behind bronze now: rows that it has still to merge count as differences.")
    if missing := sum(1 for partitions in new.gaps().values() for spans in partitions.values() if spans):
        warnings.append(
            f"Bronze misses offsets in {missing} partition(s): what they said is not in the rows."
        )
    if table.history is not None:
        warnings.append("The history begins with what bronze holds: older versions of rows go.")
    return warnings


def _ends_of(ledger: Ledger) -> dict[str, dict[int, int]]:
    return {
        source: {partition: progress.end for partition, progress in partitions.items()}
        for source, partitions in ledger.sources.items()
    }


def _cannot_undo(table: Table, problem: str) -> RepairRefusedError:
    return RepairRefusedError(operation="undo", table=table.name, problem=problem)

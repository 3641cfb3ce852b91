"""Retire a table: end its reading, move it to the archive of the lake, or delete it.

`what` is `keep`, `archive` or `remove`. `undo` names an archiving, whose tables come back.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from cdc_lakehouse.application.application import Application
from cdc_lakehouse.config.models import Table
from cdc_lakehouse.config.values import duration
from cdc_lakehouse.contract import Job
from cdc_lakehouse.errors import (
    NotSupportedYetError,
    PlanChangedError,
    RepairNotVerifiedError,
    RepairRefusedError,
    RepairWaitsError,
)
from cdc_lakehouse.lake import files
from cdc_lakehouse.lake.attempts import oldest_writer, read_attempts
from cdc_lakehouse.lake.filesystem import is_object_store
from cdc_lakehouse.lake.names import Lake, began_at
from cdc_lakehouse.lake.snapshot import newest_snapshot
from cdc_lakehouse.repair.folders import (
    Folder,
    delete_table,
    folders_of,
    is_folder,
    move_folder,
    size_of,
    standing_in,
)
from cdc_lakehouse.repair.kafka_facts import AskKafka, ask_kafka, facts_or_reason
from cdc_lakehouse.repair.kept_tables import ending_plan, is_ended, state_ending
from cdc_lakehouse.repair.operation import Outcome
from cdc_lakehouse.repair.plan import TablePlan
from cdc_lakehouse.repair.records import RepairRecord, begun_repairs, read_record, unfinished_repairs

WHAT, UNDO = "what", "undo"


class What(StrEnum):
    """What becomes of a table that nobody reads any more."""

    KEEP = "keep"
    ARCHIVE = "archive"
    REMOVE = "remove"


class Retire:
    job = Job.RETIRE
    options = frozenset({WHAT, UNDO})

    def __init__(self, ask: AskKafka = ask_kafka) -> None:
        self._ask = ask

    def plan(self, application: Application, table: Table) -> TablePlan:
        options = application.request.options
        if (unfinished := _unfinished_plan(application, table)) is not None:
            return unfinished
        if undone := options.get(UNDO):
            return _plan_undo(application, table, undone=undone)
        match _what_of(table, options):
            case What.KEEP:
                return ending_plan(application, table, self._ask(application, table.topics))
            case what:
                return self._plan_going(application, table, what)

    def facts_before(self, application: Application, table: Table) -> Mapping[str, Any]:
        """Return which Delta tables there are, for who asks later what was retired."""
        folders = folders_of(application.lake, table.name)
        return {"before": {each.name: _standing(each.uri) for each in folders if is_folder(each.uri)}}

    def act(self, application: Application, table: Table, plan: TablePlan) -> Outcome:
        if plan.options.get(WHAT) == What.KEEP:
            return state_ending(application, table, plan, self._ask(application, table.topics))
        _refuse_named(application, table)
        _refuse_running_attempts(application, plan)
        _refuse_other_tables(application.lake, plan)
        if plan.options.get(UNDO):
            moved = _move_back(application.lake, plan)
            return Outcome(counts={"tables_moved": moved}, summary="the table is where it was before")
        if plan.options[WHAT] == What.ARCHIVE:
            moved = _move_to_archive(application.lake, plan)
            where = _archive_of(application.lake, plan, plan.digest)
            return Outcome(counts={"tables_moved": moved}, summary=f"the table lies in {where}")
        deleted = _delete(application.lake, plan)
        return Outcome(counts={"tables_deleted": deleted}, summary="the table is deleted")

    def verify(self, application: Application, table: Table, record: RepairRecord) -> Outcome:
        """Look for what should be gone, and for what should be there."""
        plan, lake = record.plan, application.lake
        if plan.options.get(WHAT) == What.KEEP:
            problem = "" if is_ended(lake, table) else "its topics are still missed"
        elif plan.options.get(UNDO):
            problem = _missing_tables(plan, {folder.name: folder.uri for folder in _live(lake, plan)})
        else:
            left = [folder.name for folder in folders_of(lake, plan.table) if is_folder(folder.uri)]
            problem = f"{', '.join(left)} is still there" if left else ""
            if not problem and plan.options[WHAT] == What.ARCHIVE:
                problem = _missing_tables(plan, _archived(lake, plan, plan.digest))
        if problem:
            raise RepairNotVerifiedError(
                operation=self.job, table=plan.table, digest=plan.digest, problem=problem
            )
        return Outcome(counts={"tables_verified": len(plan.basis.get("tables", {}))})

    def _plan_going(self, application: Application, table: Table, what: What) -> TablePlan:
        _refuse_named(application, table)
        lake = application.lake
        if what is What.ARCHIVE and is_object_store(lake.root):
            raise NotSupportedYetError(feature="archiving a table of a bucket, whose folders cannot be moved")
        found = [folder for folder in folders_of(lake, table.name) if is_folder(folder.uri)]
        if not found:
            raise _refused(table, "the lake holds nothing of it")
        sizes = {folder.name: size_of(folder.uri) for folder in found}
        verb = "moves to the archive" if what is What.ARCHIVE else "is deleted"
        return TablePlan(
            operation=self.job,
            pipeline=application.pipeline.name,
            table=table.name,
            options={WHAT: what},
            basis={
                "repairs": begun_repairs(lake, table.name),
                "tables": {folder.name: _standing(folder.uri) for folder in found},
            },
            effects={
                **{f"{folder.name}_rows": _count_rows(folder) for folder in found},
                "bytes": sum(sizes.values()),
            },
            summary=f"{table.name} {verb}: {', '.join(sizes)}, {sum(sizes.values())} bytes",
            details=(*_ages(found), *self._warnings(application, table), *_after(what)),
        )

    def _warnings(self, application: Application, table: Table) -> tuple[str, ...]:
        names = [each.name for each in application.tables if each.name != table.name]
        others = [each.name for each in application.pipeline.tables if each.name not in (table.name, *names)]
        untouched = ", ".join([*names, *others]) or "none"
        return self._topics_in_kafka(application, table), f"Other tables are not touched: {untouched}."

    def _topics_in_kafka(self, application: Application, table: Table) -> str:
        facts = facts_or_reason(self._ask, application, table.topics)
        if isinstance(facts, str):
            return f"Whether its topics exist is not known: {facts}"
        there = [name for name in table.topics if name in facts.topics or name in facts.silent]
        if not there:
            return f"Kafka has no topic of it ({', '.join(table.topics)})."
        return f"Kafka still has {', '.join(there)}: what is in there stays, and no table reads it."


def _unfinished_plan(application: Application, table: Table) -> TablePlan | None:
    """Return the unfinished plan of the same retirement: a part of the table may have moved already."""
    asked = {name: value for name, value in application.request.options.items() if value}
    plans = [record.plan for record in unfinished_repairs(application.lake, table.name)]
    return next((plan for plan in plans if plan.operation is Job.RETIRE and plan.options == asked), None)


def _what_of(table: Table, options: Mapping[str, str]) -> What:
    try:
        return What(options.get(WHAT, ""))
    except ValueError:
        problem = f"its option `what` is one of {', '.join(What)}, or `undo` names an archiving"
        raise _refused(table, problem) from None


def _refuse_named(application: Application, table: Table) -> None:
    """Raise where the next run would make the table again."""
    if table.name in application.left_tables:
        return
    discover = application.pipeline.discover
    listed = discover is None or table != discover.table(table.name, topics=table.topics)
    way_out = (
        "take it out of `tables:` of the pipeline file"
        if listed
        else f"name {', '.join(table.topics)} under `exclude:` of `discover:` in the pipeline file"
    )
    raise _refused(table, f"the pipeline reads it, so the next run would make it again; {way_out} first")


def _refuse_running_attempts(application: Application, plan: TablePlan) -> None:
    """Raise while an attempt may write that began before the plan: its pipeline file may have the table."""
    planned, lake = began_at(plan.made_by), application.lake
    records = read_attempts(lake, longest=duration(application.pipeline.execution_timeout))
    before = [
        record
        for record in records.values()
        if record.attempt != plan.made_by and (planned is None or record.began <= planned)
    ]
    writer = oldest_writer(before, now=datetime.now(UTC), besides=application.attempt)
    if writer is not None:
        raise RepairWaitsError(
            operation=plan.operation, table=plan.table, attempt=writer.attempt, job=writer.job
        )


def _refuse_other_tables(lake: Lake, plan: TablePlan) -> None:
    """Raise where a folder holds another table, or another version of it, than the person saw.

    Folders that an earlier try has moved or deleted, and those that it was deleting, are left out.
    """
    undone = plan.options.get(UNDO)
    uris = _archived(lake, plan, undone) if undone else {f.name: f.uri for f in _live(lake, plan)}
    for name, standing in plan.basis["tables"].items():
        current = _standing(uris[name])
        if current is not None and current != standing:
            raise _changed(plan, f"its {name} is not what it was when the plan was made")
    unknown = [folder.name for folder in folders_of(lake, plan.table) if is_folder(folder.uri)]
    new = sorted({*unknown} - plan.basis["tables"].keys())
    if new:
        raise _changed(plan, f"its {', '.join(new)} came since the plan was made")


def _move_to_archive(lake: Lake, plan: TablePlan) -> int:
    archived, moved = _archived(lake, plan, plan.digest), 0
    for folder in _live(lake, plan):
        if is_folder(folder.uri):
            move_folder(folder.uri, archived[folder.name])
            moved += 1
    _delete_state(lake, plan.table)
    return moved


def _move_back(lake: Lake, plan: TablePlan) -> int:
    """Move the archived tables back, silver last: readers find it once all the others are there."""
    archived, moved = _archived(lake, plan, plan.options[UNDO]), 0
    for folder in reversed(_live(lake, plan)):
        if is_folder(archived[folder.name]):
            if is_folder(folder.uri):
                raise _changed(plan, f"there is a {folder.name} of this name again")
            move_folder(archived[folder.name], folder.uri)
            moved += 1
    return moved


def _delete(lake: Lake, plan: TablePlan) -> int:
    deleted = 0
    for folder in _live(lake, plan):
        if is_folder(folder.uri):
            delete_table(folder.uri)
            deleted += 1
    _delete_state(lake, plan.table)
    return deleted


def _delete_state(lake: Lake, table: str) -> None:
    """Delete what jobs keep about the table, except for reports of runs and records of repairs."""
    for uri in (lake.looks(table), *(lake.maintenance(job, table) for job in (Job.OPTIMIZE, Job.VACUUM))):
        files.delete_file(uri)
    for uri in (lake.checkpoints(table), lake.shadows(table)):
        if is_folder(uri):
            parent, _, name = uri.rpartition("/")
            files.delete_child(parent, name)


def _plan_undo(application: Application, table: Table, *, undone: str) -> TablePlan:
    _refuse_named(application, table)
    lake = application.lake
    record = read_record(lake, table.name, undone, operation=Job.RETIRE)
    if not record.is_done or record.plan.options.get(WHAT) != What.ARCHIVE:
        raise _refused(table, f"the plan {undone} has archived nothing")
    archived = _archived(lake, record.plan, undone)
    missing = _missing_tables(record.plan, archived)
    if missing:
        raise _refused(table, f"the archive is not whole: {missing}")
    there = [folder.name for folder in folders_of(lake, table.name) if is_folder(folder.uri)]
    if there:
        raise _refused(table, f"there is a table of this name again ({', '.join(there)})")
    return TablePlan(
        operation=Job.RETIRE,
        pipeline=application.pipeline.name,
        table=table.name,
        options={UNDO: undone},
        basis={
            "repairs": begun_repairs(lake, table.name),
            "tables": record.plan.basis["tables"],
        },
        effects=record.plan.effects,
        summary=f"brings back what the plan {undone} has archived: {', '.join(archived)}",
        details=("Name the table in the pipeline file afterwards: it goes on where it ended.",),
    )


def _live(lake: Lake, plan: TablePlan) -> list[Folder]:
    return [folder for folder in folders_of(lake, plan.table) if folder.name in plan.basis["tables"]]


def _archived(lake: Lake, plan: TablePlan, digest: str) -> dict[str, str]:
    """Return where each Delta table of the plan lies in the archive."""
    where = _archive_of(lake, plan, digest)
    return {name: f"{where}/{name}" for name in plan.basis["tables"]}


def _archive_of(lake: Lake, plan: TablePlan, digest: str) -> str:
    return f"{lake.archive(plan.table)}/{digest}"


def _missing_tables(plan: TablePlan, uris: Mapping[str, str]) -> str:
    """Return which tables are not there as they were when they were planned; empty for none."""
    missing = [name for name, standing in plan.basis["tables"].items() if _standing(uris[name]) != standing]
    return f"{', '.join(missing)} is missing or another table" if missing else ""


def _standing(uri: str) -> list[str | int] | None:
    standing = standing_in(uri)
    return None if standing is None else [*standing]


def _count_rows(folder: Folder) -> int:
    """Return the rows of the newest version, as its log tells them; 0 where it cannot be read."""
    snapshot = newest_snapshot(folder.uri) if standing_in(folder.uri) is not None else None
    return 0 if snapshot is None else snapshot.row_count or 0


def _ages(found: list[Folder]) -> list[str]:
    sentences = []
    for folder in found:
        standing = standing_in(folder.uri)
        newest = max((f.modified for f in files.listed_files(f"{folder.uri}/_delta_log")), default=None)
        if standing is None or newest is None:
            sentences.append(f"The log of its {folder.name} cannot be read.")
        else:
            at = newest.isoformat(timespec="seconds")
            sentences.append(f"Its {folder.name} has version {standing[1]}, committed at {at}.")
    return sentences


def _after(what: What) -> tuple[str, ...]:
    if what is What.ARCHIVE:
        return ("`undo` with this plan's digest brings it back.",)
    return ("This cannot be undone. Reports of runs and records of repairs stay.",)


def _changed(plan: TablePlan, problem: str) -> PlanChangedError:
    return PlanChangedError(operation=plan.operation, table=plan.table, digest=plan.digest, problem=problem)


def _refused(table: Table, problem: str) -> RepairRefusedError:
    return RepairRefusedError(operation=Job.RETIRE, table=table.name, problem=problem)

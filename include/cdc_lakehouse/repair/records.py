"""The record of a repair in the lake: its plan, who asked, who approved, what came of it.

It is the audit trail, and what the steps of a repair hand to each other. One file for each plan of a table.
A repair has begun once it is approved. It ends by being done, or by being stopped: its newest try ended with
an error that a further try would meet again, or a plan that was made since took its place. Until then it is
unfinished, and other repairs of the table wait for it (decision 0064).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Self

from cdc_lakehouse.application.signing import signature
from cdc_lakehouse.contract import Job, JobRequest
from cdc_lakehouse.errors import PlanChangedError
from cdc_lakehouse.lake import files
from cdc_lakehouse.lake.names import Lake
from cdc_lakehouse.repair.plan import TablePlan

RECORD_VERSION = 1
UNFINISHED = "unfinished"
_SUFFIX = ".json"
MUST_BE_FINISHED = frozenset({Job.ERASE, Job.RETIRE})
"""Kinds whose half is nothing that another repair may start from: values that are to go are still there, or
layers of the table lie in two places."""


@dataclass(frozen=True, slots=True)
class RepairRecord:
    plan: TablePlan
    planned: Mapping[str, Any]
    """Who asked for the plan, why and when."""
    approved: Mapping[str, Any] | None = None
    """Who approved it and when; None until it is carried out for the first time."""
    done_at: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    """What was changed."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What verification and undo need: versions of Delta tables before and after."""
    tried_by: str = ""
    """Attempt of the newest try to carry it out."""
    stopped: Mapping[str, Any] | None = None
    """When it ended without being done (`at`), why (`why`), and the plan that took its place (`by`)."""

    @property
    def is_done(self) -> bool:
        return self.done_at is not None

    @property
    def is_unfinished(self) -> bool:
        return self.approved is not None and self.done_at is None and self.stopped is None

    @property
    def standing(self) -> str | None:
        """Return how far it is, as later plans remember it; None before it has begun."""
        if self.done_at is not None:
            return f"done {self.done_at}"
        if self.stopped is not None:
            return f"stopped {self.stopped['at']}"
        return UNFINISHED if self.is_unfinished else None

    def with_approval(self, request: JobRequest, facts: Mapping[str, Any]) -> Self:
        """Return the record with who approved the plan, and with `facts` of the table before it."""
        signed = signature(request)
        approved = {**signed, "user": request.approved_by or signed["user"], "at": _now()}
        return replace(self, approved=approved, facts=dict(facts))

    def with_try(self, attempt: str) -> Self:
        """Return the record of a repair that `attempt` carries out now."""
        return replace(self, tried_by=attempt, stopped=None)

    def with_stop(self, why: str, *, by: str = "") -> Self:
        return replace(self, stopped={"at": _now(), "why": why, "by": by})

    def with_result(self, counts: Mapping[str, int], facts: Mapping[str, Any]) -> Self:
        return replace(self, done_at=_now(), counts=dict(counts), facts={**self.facts, **facts})

    def to_json(self) -> str:
        return json.dumps({"v": RECORD_VERSION, **asdict(self)}, indent=1, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Raise `ValueError` for a record of another release."""
        document = json.loads(text)
        version = document.pop("v", None)
        if version != RECORD_VERSION:
            raise ValueError(f"the record has version {version}, this release reads {RECORD_VERSION}")
        return cls(**{**document, "plan": TablePlan.from_document(document["plan"])})

    @classmethod
    def of_plan(cls, plan: TablePlan, request: JobRequest) -> Self:
        return cls(plan, planned={**signature(request), "at": _now()})


def write_record(lake: Lake, record: RepairRecord) -> None:
    """Replace the record of a plan as a whole; a second call writes the same."""
    plan = record.plan
    uri = f"{lake.repairs(plan.table)}/{plan.digest}{_SUFFIX}"
    files.write_text(uri, record.to_json(), durably=True)


def read_record(lake: Lake, table: str, digest: str, *, operation: str | None = None) -> RepairRecord:
    """Raise `PlanChangedError` where no such plan, of this operation, was made for the table."""
    if digest.isalnum():
        text = files.read_text_if_there(f"{lake.repairs(table)}/{digest}{_SUFFIX}")
        record = None if text is None else RepairRecord.from_json(text)
        if record is not None and operation in (None, record.plan.operation):
            return record
    problem = "no such plan was made for this table"
    raise PlanChangedError(operation=operation or "a repair", table=table, digest=digest, problem=problem)


def begun_repairs(lake: Lake, table: str) -> dict[str, str]:
    """Return how far the repairs of a table are that have begun, by the digests of their plans.

    A plan keeps this in its basis: it describes a table that is gone once one of them has moved on.
    """
    standings = {digest: record.standing for digest, record in _read_records(lake, table).items()}
    return {digest: standing for digest, standing in sorted(standings.items()) if standing is not None}


def unfinished_repairs(lake: Lake, table: str) -> tuple[RepairRecord, ...]:
    """Return the repairs of a table that have begun and not ended."""
    records = _read_records(lake, table)
    return tuple(records[digest] for digest in sorted(records) if records[digest].is_unfinished)


def newest_erasure(lake: Lake, table: str) -> datetime | None:
    """Return when rows of the table were erased last; None where never.

    An erasure that has not finished counts from its approval: its layers may hold different rows.
    """
    records = _read_records(lake, table).values()
    erasures = [record for record in records if record.plan.operation is Job.ERASE]
    times = [record.done_at or (record.approved or {}).get("at") for record in erasures]
    return max((datetime.fromisoformat(time) for time in times if time), default=None)


def _read_records(lake: Lake, table: str) -> dict[str, RepairRecord]:
    """Return the records of a table by the digests of their plans."""
    texts = {
        file.name.removesuffix(_SUFFIX): files.read_text_if_there(file.uri)
        for file in files.listed_files(lake.repairs(table))
        if file.name.endswith(_SUFFIX) and not file.name.startswith(".")
    }
    return {digest: RepairRecord.from_json(text) for digest, text in texts.items() if text is not None}


def refuse_other_repairs(lake: Lake, plan: TablePlan) -> tuple[RepairRecord, ...]:
    """Return the unfinished repairs of the table whose place this plan takes: it was made since they began.

    Raise where another one is unfinished, or has begun or moved on since the plan was made.
    """
    known, replaced, moved_on = plan.basis["repairs"], [], []
    for digest, record in sorted(_read_records(lake, plan.table).items()):
        is_replaced = record.stopped is not None and record.stopped["by"] == plan.digest
        if digest == plan.digest or record.standing is None or is_replaced:
            continue
        is_known = known.get(digest) == record.standing
        if record.is_unfinished and not (is_known and may_be_replaced(record)):
            raise _changed(plan, f"{in_words(record)}; {way_out_of(record)}")
        if not is_known:
            moved_on.append(digest)
        elif record.is_unfinished:
            replaced.append(record)
    if moved_on:
        raise _changed(plan, f"another repair of the table has begun since ({', '.join(moved_on)})")
    return tuple(replaced)


def may_be_replaced(record: RepairRecord) -> bool:
    """Return whether another plan may take the place of this unfinished repair."""
    return record.plan.operation not in MUST_BE_FINISHED


def in_words(record: RepairRecord) -> str:
    """Return a sentence about an unfinished repair."""
    plan, began = record.plan, (record.approved or {}).get("at")
    return f"{plan.operation} of plan {plan.digest} began at {began} and is not finished"


def way_out_of(record: RepairRecord) -> str:
    """Return what a person does about an unfinished repair before another one."""
    plan = record.plan
    clear = f"clear the task `act` of its run of `cdc_{plan.pipeline}_{plan.operation}` first"
    if may_be_replaced(record):
        return f"{clear}, or make a new plan, which takes its place"
    return f"{clear}, or trigger that DAG again with the same form, which goes on with it"


def _changed(plan: TablePlan, problem: str) -> PlanChangedError:
    return PlanChangedError(operation=plan.operation, table=plan.table, digest=plan.digest, problem=problem)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")

"""The record of a repair in the lake: its plan, who asked, who approved, what came of it.

It is the audit trail, and what the steps of a repair hand to each other. One file for each plan of a table.
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
_SUFFIX = ".json"


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

    @property
    def is_done(self) -> bool:
        return self.done_at is not None

    def with_approval(self, request: JobRequest, facts: Mapping[str, Any]) -> Self:
        """Return the record with who approved the plan, and with `facts` of the table before it."""
        signed = signature(request)
        approved = {**signed, "user": request.approved_by or signed["user"], "at": _now()}
        return replace(self, approved=approved, facts=dict(facts))

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


def completed_repairs(lake: Lake, table: str) -> tuple[str, ...]:
    """Return the digests of the plans of a table that were carried out, in no particular order.

    A plan made before one of them describes a table that is gone.
    """
    return tuple(sorted(digest for digest, record in _read_records(lake, table).items() if record.is_done))


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


def refuse_other_repairs(lake: Lake, plan: TablePlan) -> None:
    """Raise where another repair of the table was carried out since the plan was made."""
    others = sorted({*completed_repairs(lake, plan.table)} - {*plan.basis["repairs"], plan.digest})
    if others:
        problem = f"another repair of the table was carried out since ({', '.join(others)})"
        raise PlanChangedError(
            operation=plan.operation, table=plan.table, digest=plan.digest, problem=problem
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")

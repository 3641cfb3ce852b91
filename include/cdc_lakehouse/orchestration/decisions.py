"""What a person may decide when triggering a DAG of a pipeline: the form, and what of it a task gets.

Airflow checks the values against these schemas, whether they come from the form or through the API. They
reach the ingest alone, each group those about its own tables, or in the maintenance DAG the replay of the
quarantine; and they stand in ledger and report afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from airflow.sdk import Param

from cdc_lakehouse.config.values import NAME_PATTERN
from cdc_lakehouse.contract import Job
from cdc_lakehouse.errors import NotSupportedYetError

ACCEPT_GAP = "accept_gap"
SOURCE_EPOCH = "source_epoch"
ACKNOWLEDGE_FOREIGN = "acknowledge_foreign"
FILL_GAPS = "fill_gaps"
DECISIONS = (ACCEPT_GAP, SOURCE_EPOCH, ACKNOWLEDGE_FOREIGN, FILL_GAPS)
CLOSE_CASES = "close_cases"
REOPEN_CASES = "reopen_cases"
CASE_DECISIONS = (CLOSE_CASES, REOPEN_CASES)
_CASE_PATTERN = r"^([a-z_0-9]+|[A-Za-z0-9._-]+/[0-9]+@[0-9]+)$"
_WHO_DECIDES = {
    Job.BRONZE_INGEST: DECISIONS,
    Job.SILVER_MERGE: DECISIONS,
    Job.VERIFY: DECISIONS,
    **dict.fromkeys((Job.QUARANTINE_REPLAY, Job.OPTIMIZE, Job.VACUUM, Job.CLEAN_CHECKPOINTS), CASE_DECISIONS),
}
"""What a run of its DAG may be asked; the tasks beside the one that does it leave it alone."""

_ABOUT = {
    ACCEPT_GAP: (
        "Tables that go on behind records which Kafka no longer holds (`OFFSETS_LOST`). The missing ranges "
        "stay in the ledger and in every report. Afterwards take a new snapshot of the table."
    ),
    SOURCE_EPOCH: (
        'Table and number, like `{"orders": 1}`: its topic was made again, cut, or moved to another '
        "cluster (`TOPIC_RECREATED`, `LOG_CUT`, `CLUSTER_CHANGED`), or its database went back. The number "
        "must be above the one before; the first is 1."
    ),
    ACKNOWLEDGE_FOREIGN: (
        "Tables whose bronze somebody restored or edited by hand, and meant to (`FOREIGN_COMMIT`). The "
        "ledger takes over what the table holds; what a RESTORE took back is read from Kafka again."
    ),
    FILL_GAPS: (
        "Tables whose `gaps` are read from Kafka, as far as it still holds them; the merge puts their rows "
        "where they belong. What Kafka no longer holds stays a gap, and the report says so."
    ),
    CLOSE_CASES: (
        "Table and undecodable records that nobody waits for any more, as `make quarantine` lists them: a "
        'code, or one record, like `{"orders": ["bad_frame", "shop.public.orders/0@17"]}`. A code means the '
        "records that have it now. Rows stay in bronze with their bytes; silver goes on without them."
    ),
    REOPEN_CASES: "Like the one above: closed cases that are to be decoded after all, from this run on.",
}


def decision_params(tables: Iterable[str], *, more: bool) -> dict[str, Param]:
    """The trigger form of a pipeline; empty values decide nothing. `more` tables are known to the job."""
    names = sorted(tables)
    name = {"type": "string", "pattern": NAME_PATTERN} if more else {"type": "string", "enum": names}
    several: dict[str, Any] = {"type": "array", "items": name, "uniqueItems": True}
    numbers: dict[str, Any] = {
        "type": "object",
        "propertyNames": name,
        "additionalProperties": {"type": "integer", "minimum": 1},
    }
    return {
        ACCEPT_GAP: Param([], description_md=_ABOUT[ACCEPT_GAP], examples=names, **several),
        SOURCE_EPOCH: Param({}, description_md=_ABOUT[SOURCE_EPOCH], **numbers),
        ACKNOWLEDGE_FOREIGN: Param([], description_md=_ABOUT[ACKNOWLEDGE_FOREIGN], examples=names, **several),
        FILL_GAPS: Param([], description_md=_ABOUT[FILL_GAPS], examples=names, **several),
    }


def case_params(tables: Iterable[str], *, more: bool) -> dict[str, Param]:
    """The trigger form of a pipeline's maintenance."""
    names = sorted(tables)
    name = {"type": "string", "pattern": NAME_PATTERN} if more else {"type": "string", "enum": names}
    asked = {"type": "array", "items": {"type": "string", "pattern": _CASE_PATTERN}, "minItems": 1}
    by_table: dict[str, Any] = {"type": "object", "propertyNames": name, "additionalProperties": asked}
    return {each: Param({}, description_md=_ABOUT[each], **by_table) for each in CASE_DECISIONS}


def decided(conf: Mapping[str, Any] | None, *, job: Job, tables: Iterable[str] | None) -> dict[str, Any]:
    """Fields of the `JobRequest` for `tables`, or for whichever the job discovers.

    Raises for what no task of this run would do.
    """
    given = {name: value for name, value in (conf or {}).items() if value}
    strange = sorted(given.keys() - set(_WHO_DECIDES[job]))
    if strange:
        raise NotSupportedYetError(feature=f"a run with parameters ({', '.join(strange)})")
    if job is Job.QUARANTINE_REPLAY:
        return {
            name: {table: tuple(asked) for table, asked in given.get(name, {}).items()}
            for name in CASE_DECISIONS
        }
    if job is not Job.BRONZE_INGEST:
        return {}
    own = None if tables is None else set(tables)

    def of_ours(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in names if own is None or name in own)

    epochs = given.get(SOURCE_EPOCH, {})
    return {
        ACCEPT_GAP: of_ours(given.get(ACCEPT_GAP, ())),
        SOURCE_EPOCH: {name: epochs[name] for name in of_ours(epochs)},
        ACKNOWLEDGE_FOREIGN: of_ours(given.get(ACKNOWLEDGE_FOREIGN, ())),
        FILL_GAPS: of_ours(given.get(FILL_GAPS, ())),
    }

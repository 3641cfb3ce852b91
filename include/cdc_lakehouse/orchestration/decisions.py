"""What a person may decide when triggering a DAG of a pipeline: the form, and what of it a task gets.

Airflow checks the form of the values against these schemas, whether they come from the form or through the
API. Names, and what a decision is about, are free text, since tables may be discovered: the task answers a
wrong name with the known ones. A decision reaches the ingest or the merge of the group that has the table, or
in the maintenance DAG the replay of the quarantine. Ledger and report record it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from airflow.sdk import Param

from cdc_lakehouse.contract import MAX_SOURCE_EPOCH, Job, table_named_by
from cdc_lakehouse.errors import NotSupportedYetError, UnknownNameError
from cdc_lakehouse.orchestration.form_fields import lines_field, text_field
from cdc_lakehouse.orchestration.interval_run import MAINTENANCE_PARAMS, RUN_PARAMS, named_tables

ACCEPT_GAP = "accept_gap"
SOURCE_EPOCH = "source_epoch"
ACKNOWLEDGE_FOREIGN = "acknowledge_foreign"
ACCEPT_DELETES = "accept_deletes"
FILL_GAPS = "fill_gaps"
STOP_READING = "stop_reading"
DECISIONS = (ACCEPT_GAP, SOURCE_EPOCH, ACKNOWLEDGE_FOREIGN, STOP_READING, ACCEPT_DELETES, FILL_GAPS)
CLOSE_CASES = "close_cases"
REOPEN_CASES = "reopen_cases"
CASE_DECISIONS = (CLOSE_CASES, REOPEN_CASES)
_BY_LINE = frozenset(
    {ACCEPT_GAP, ACKNOWLEDGE_FOREIGN, STOP_READING, ACCEPT_DELETES, FILL_GAPS, *CASE_DECISIONS}
)
NOTE = "note"
MOST_OF_A_NOTE = 500
"""Characters."""
MAINTENANCE_JOBS = (Job.QUARANTINE_REPLAY, Job.OPTIMIZE, Job.VACUUM, Job.CLEAN_CHECKPOINTS)
_WHO_DECIDES = {
    Job.BRONZE_INGEST: DECISIONS,
    Job.SILVER_MERGE: DECISIONS,
    Job.VERIFY: DECISIONS,
    Job.PREFLIGHT: (),
    **dict.fromkeys(MAINTENANCE_JOBS, CASE_DECISIONS),
}
"""What a run of its DAG may be asked; the tasks beside the one that does it leave it alone."""

_ABOUT = {
    ACCEPT_GAP: (
        "Records that Kafka no longer holds and that are given up: per line one value as `OFFSETS_LOST` "
        "prints it, like `orders=shop.public.orders/0:120-480`. If more is lost since, the run changes "
        "nothing and prints the new value. The offsets stay in the ledger and in every report as missing. "
        "Afterwards take a new snapshot of the table."
    ),
    SOURCE_EPOCH: (
        'Table and number, like `{"orders": 1}`: its topic was made again, cut, or moved to another '
        "cluster (`TOPIC_RECREATED`, `LOG_CUT`, `CLUSTER_CHANGED`), or its database went back. The number "
        "must be above the one before; the first is 1. Take the next one."
    ),
    ACKNOWLEDGE_FOREIGN: (
        "Bronze tables that somebody restored or edited by hand, and meant to: per line one value as "
        "`FOREIGN_COMMIT` prints it, like `orders=v12@step9`. If somebody changed the table since, the run "
        "changes nothing and prints the new value. The ledger takes over what the table holds; what a "
        "RESTORE took back is read from Kafka again."
    ),
    STOP_READING: (
        "Tables that were dropped for good at the source: per line one value as `TOPIC_MISSING` or "
        "`SOURCE_TABLE_MISSING` prints it, like `orders=step7`. Bronze, silver and history stay as they are, "
        "and the table is green. If its topic is there again, it is read again."
    ),
    ACCEPT_DELETES: (
        "Rows that a merge would remove and `deletes_limit` holds back (`DELETES_LIMIT`), and that are "
        "really gone at the source: per line one value as the error prints it, like "
        "`orders=step12@v40:9000rows`. It is good for this one removal. What bronze got since is merged by "
        "the next run."
    ),
    FILL_GAPS: (
        "Per line the name of a table whose `gaps` are read from Kafka, as far as it still holds them; the "
        "merge puts their rows where they belong. What Kafka no longer holds stays a gap, and the report "
        "says so."
    ),
    NOTE: (
        "The reason. The ledger and the report keep it beside the decision, with the user who triggered the "
        "run. (Airflow does not give its own note of a run to the tasks.)"
    ),
    CLOSE_CASES: (
        "Undecodable records that nobody waits for any more: per line all of one code, as `make quarantine` "
        "and the log of `quarantine_replay` print them, like `orders=bad_frame:2records@5f1c09ae77d2`, or "
        "one record, like `orders=shop.public.orders/0@17`. If a record of that code came since, the run "
        "changes nothing and prints the new value. Rows stay in bronze with their bytes; silver goes on "
        "without them."
    ),
    REOPEN_CASES: "Like the one above: closed cases that are to be decoded after all, from this run on.",
}


_TEXT: dict[str, Any] = {"type": "string", "minLength": 1}


def decision_params() -> dict[str, Param]:
    """The trigger form of a pipeline; empty values decide nothing."""
    numbers: dict[str, Any] = {
        "type": ["null", "object"],
        "propertyNames": _TEXT,
        "additionalProperties": {"type": "integer", "minimum": 1, "maximum": MAX_SOURCE_EPOCH},
    }
    return {
        ACCEPT_GAP: lines_field(_ABOUT[ACCEPT_GAP]),
        SOURCE_EPOCH: Param({}, description_md=_ABOUT[SOURCE_EPOCH], **numbers),
        ACKNOWLEDGE_FOREIGN: lines_field(_ABOUT[ACKNOWLEDGE_FOREIGN]),
        STOP_READING: lines_field(_ABOUT[STOP_READING]),
        ACCEPT_DELETES: lines_field(_ABOUT[ACCEPT_DELETES]),
        FILL_GAPS: lines_field(_ABOUT[FILL_GAPS]),
        NOTE: note_param(),
    }


def case_params() -> dict[str, Param]:
    """The trigger form of a pipeline's maintenance."""
    cases = {name: lines_field(_ABOUT[name]) for name in CASE_DECISIONS}
    return {**cases, NOTE: note_param()}


def note_param() -> Param:
    return text_field(_ABOUT[NOTE], most_characters=MOST_OF_A_NOTE)


def note_in(conf: Mapping[str, Any] | None) -> str | None:
    """Return why a person triggered the run, in one line: it becomes an argument and a line of the log."""
    return " ".join(str((conf or {}).get(NOTE) or "").split())[:MOST_OF_A_NOTE] or None


def decided(
    conf: Mapping[str, Any] | None,
    *,
    job: Job,
    pipeline: str,
    tables: Iterable[str] | None,
    known: Iterable[str] | None,
) -> dict[str, Any]:
    """Fields of the `JobRequest` for `tables`, or for whichever the job discovers.

    `known` are all tables of the pipeline, None where some are discovered: then the job that discovers them
    refuses unknown names. Raise for a decision that no task of this run would carry out.
    """
    given = _given(conf or {})
    about_the_run = MAINTENANCE_PARAMS if job in MAINTENANCE_JOBS else RUN_PARAMS
    given = {name: value for name, value in given.items() if name not in about_the_run}
    strange = sorted(given.keys() - set(_WHO_DECIDES[job]))
    if strange:
        raise NotSupportedYetError(feature=f"a run with parameters ({', '.join(strange)})")
    if job not in (Job.BRONZE_INGEST, Job.SILVER_MERGE, Job.QUARANTINE_REPLAY):
        return {}
    if known is not None:
        _require_known(given, set(known), pipeline=pipeline)
    if job is Job.QUARANTINE_REPLAY:
        return {name: tuple(given.get(name, ())) for name in CASE_DECISIONS}
    own = None if tables is None else set(tables)

    def of_ours(values: Iterable[str]) -> tuple[str, ...]:
        return tuple(value for value in values if own is None or table_named_by(value) in own)

    if job is Job.SILVER_MERGE:
        return {ACCEPT_DELETES: of_ours(given.get(ACCEPT_DELETES, ()))}
    epochs = given.get(SOURCE_EPOCH, {})
    return {
        ACCEPT_GAP: of_ours(given.get(ACCEPT_GAP, ())),
        SOURCE_EPOCH: {name: epochs[name] for name in of_ours(epochs)},
        ACKNOWLEDGE_FOREIGN: of_ours(given.get(ACKNOWLEDGE_FOREIGN, ())),
        STOP_READING: of_ours(given.get(STOP_READING, ())),
        FILL_GAPS: of_ours(given.get(FILL_GAPS, ())),
    }


def refuse_decisions_beside(conf: Mapping[str, Any] | None, *, pipeline: str) -> None:
    """Raise for a decision about a table that the run leaves alone: it would be green and do nothing."""
    named, given = named_tables(conf), _given(conf or {})
    if named:
        decisions = {name: given[name] for name in (*DECISIONS, *CASE_DECISIONS) if name in given}
        _require_known(decisions, set(named), pipeline=pipeline)


def _given(conf: Mapping[str, Any]) -> dict[str, Any]:
    """Return the decisions of the conf. Spaces and backquotes around a line are dropped."""
    cleaned = {
        name: list(filter(None, (str(line).strip(" \t`") for line in value))) if name in _BY_LINE else value
        for name, value in conf.items()
        if value and name != NOTE
    }
    return {name: value for name, value in cleaned.items() if value}


def _require_known(given: Mapping[str, Any], known: set[str], *, pipeline: str) -> None:
    """Raise for a table that is in no group of the pipeline: every group would ignore it."""
    for parameter, values in given.items():
        tables = map(table_named_by, values)
        error = UnknownNameError.of(parameter, tables, known=known, kind="table", pipeline=pipeline)
        if error is not None:
            raise error

"""What a person may decide when triggering the DAG of a pipeline: the form, and what of it a task gets.

Airflow checks the values against these schemas, whether they come from the form or through the API. They
reach the ingest alone, each group those about its own tables, and stand in ledger and report afterwards.
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


def decided(conf: Mapping[str, Any] | None, *, job: Job, tables: Iterable[str] | None) -> dict[str, Any]:
    """Fields of the `JobRequest` for `tables`, or for whichever the job discovers.

    Raises for what no task of this run would do.
    """
    given = {name: value for name, value in (conf or {}).items() if value}
    known = DECISIONS if job in (Job.BRONZE_INGEST, Job.SILVER_MERGE) else ()
    strange = sorted(given.keys() - set(known))
    if strange:
        raise NotSupportedYetError(feature=f"a run with parameters ({', '.join(strange)})")
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

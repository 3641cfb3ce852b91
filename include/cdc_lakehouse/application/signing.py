"""The signature of a decision in ledger and report: its user, run and reason."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from typing import Any

from cdc_lakehouse.contract import JobRequest

_BY_A_PERSON = frozenset(
    {
        "accept_gap",
        "source_epoch",
        "acknowledge_foreign",
        "stop_reading",
        "accept_deletes",
        "fill_gaps",
        "close_cases",
        "reopen_cases",
    }
)


def signed(decisions: Mapping[str, Any], request: JobRequest) -> dict[str, Any]:
    """Return the decisions with `decided_by` (user, run and note), if a person made one of them.

    Without Airflow it is the user of the machine.
    """
    if not decisions.keys() & _BY_A_PERSON:
        return dict(decisions)
    return {**decisions, "decided_by": signature(request)}


def signature(request: JobRequest) -> dict[str, str | None]:
    """Return the user, the run and the note of a request; without Airflow the user of the machine."""
    run = request.airflow
    if run is None:
        return {"user": _user_of_the_machine(), "run": None, "note": None}
    return {"user": run.triggered_by, "run": f"{run.dag_id} {run.run_id}", "note": run.note}


def _user_of_the_machine() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number without a name
        return None

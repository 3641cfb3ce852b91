"""Errors of repairs: a plan that cannot be made or carried out, a result that is not what was planned."""

from __future__ import annotations

from cdc_lakehouse.errors.configuration import ConfigError
from cdc_lakehouse.errors.data import DataError
from cdc_lakehouse.errors.retryable import RetryableError


class RepairWaitsError(RetryableError):
    code = "REPAIR_WAITS"
    sentence = "{operation} of {table} waits for the attempt {attempt} of {job}, which may still write it"
    advice = (
        "This try changed nothing. The next one goes on once that attempt has ended; one that was killed "
        "counts as ended after an hour without a sign of life."
    )
    operation: str
    table: str
    attempt: str
    job: str


class RepairRefusedError(ConfigError):
    code = "REPAIR_REFUSED"
    sentence = "{operation} of {table} cannot be done: {problem}"
    advice = "Nothing was changed. Correct what the sentence names, and trigger the DAG of the repair again."
    operation: str
    table: str
    problem: str


class PlanChangedError(ConfigError):
    code = "PLAN_CHANGED"
    sentence = "the plan {digest} of {operation} for {table} cannot be carried out: {problem}"
    advice = (
        "The table was left as it is. Trigger the DAG of the repair again with the same form: it makes a new "
        "plan, which you can approve."
    )
    operation: str
    table: str
    digest: str
    problem: str


class RepairNotVerifiedError(DataError):
    code = "REPAIR_NOT_VERIFIED"
    sentence = (
        "{operation} of {table} was carried out as plan {digest}, and is not what it promised: {problem}"
    )
    advice = (
        "Readers have the new contents. Do not approve anything else for the table: bring the old contents "
        "back where the repair has an `undo`, and report it."
    )
    operation: str
    table: str
    digest: str
    problem: str


class ResyncNotEndedError(RetryableError):
    code = "RESYNC_NOT_ENDED"
    sentence = "the snapshot of {table} that plan {digest} asked for has not ended: {problem}"
    advice = (
        "Nothing is wrong with the table, and the connector goes on. The next try of `act` sends no second "
        "signal and waits on. If it never ends, look for the table in Kafka Connect's log: mostly the "
        "connector is stopped, or its role may not SELECT the table."
    )
    table: str
    digest: str
    problem: str

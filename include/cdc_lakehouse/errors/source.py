"""Exit 65: the source is not what it was."""

from __future__ import annotations

from cdc_lakehouse.errors.data import DataError


class SourceTableMissingError(DataError):
    code = "SOURCE_TABLE_MISSING"
    sentence = "the source has no table {relation} that {table} could be compared with{decision}"
    advice = (
        "If it was dropped or renamed for good: trigger the DAG with the stop_reading that the sentence "
        "prints, copied unchanged. Its rows stay. If the connection leads to another database, "
        "correct it."
    )
    table: str
    relation: str
    decision: str
    """`; stop_reading: …`."""


class NotFreshError(DataError):
    code = "NOT_FRESH"
    sentence = (
        "{table} lacks changes that its source had by {since}, {age} ago, and it promises "
        "`fresh_within: {promise}`; {connector}"
    )
    advice = (
        "What Kafka has is in bronze and will be merged: the delay is before Kafka. If the connector does "
        "not run, read why in Kafka Connect's log, mend that, and restart it: POST "
        "<connect>/connectors/<name>/restart?includeTasks=true&onlyFailed=true. If it runs: a snapshot or a "
        "long transaction may hold it up, or it has no heartbeat while the source is quiet (runbook)."
    )
    table: str
    since: str
    age: str
    promise: str
    connector: str
    """State of the connector as Kafka Connect describes it, or that it is not known."""


class SourceWentBackError(DataError):
    code = "SOURCE_WENT_BACK"
    snapshot = "blocking"
    sentence = (
        "the source of {table} went back: {count} event(s) that were never sent before stand below older "
        "ones, first {coordinate} at {position}, below {highest}; the table is in source epoch {epoch}{doubt}"
    )
    advice = (
        "Silver was left as it is; bronze goes on. If the sentence names records that are missing or could "
        "not be decoded, bring them back first (fill_gaps, `quarantine_replay`): events that were sent again "
        "are known by them. Otherwise the database was restored, or a failover lost its newest changes. "
        "Trigger the DAG with source_epoch for this table, a number above its epoch: the new one begins "
        "where the source turned back. Then take a new full snapshot: rows that the restore undid are still "
        "in silver."
    )
    table: str
    count: int
    coordinate: str
    position: str
    highest: str
    epoch: int
    doubt: str = ""
    """Of records that may have been the same events; empty where there are none."""

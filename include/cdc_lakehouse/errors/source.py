"""Exit 65: the source is not what it was."""

from __future__ import annotations

from cdc_lakehouse.errors.data import DataError


class SourceTableMissingError(DataError):
    code = "SOURCE_TABLE_MISSING"
    sentence = "the source has no table {relation} that {table} could be compared with"
    advice = (
        "If it was dropped or renamed for good, take the table out of the pipeline or set its verify off. "
        "If the connection leads to another database, correct it."
    )
    table: str
    relation: str


class SourceWentBackError(DataError):
    code = "SOURCE_WENT_BACK"
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

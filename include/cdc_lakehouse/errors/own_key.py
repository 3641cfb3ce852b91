"""Exit 65: rows of the source contradict the key of a table."""

from __future__ import annotations

from cdc_lakehouse.errors.data import DataError


class KeyNotToldError(DataError):
    code = "KEY_NOT_TOLD"
    repair = "rebuild"
    snapshot = "blocking"
    sentence = (
        "{count} event(s) of {table} do not tell {column}, which `key` names: {why}; first {coordinate}"
    )
    advice = (
        "Silver was left as it is; bronze goes on. Columns beside the message key need REPLICA IDENTITY FULL "
        "at the source: set it and take a new snapshot of the table, behind which older events do not count "
        "(with `history` they do). Or name other columns, or take `key` out, and rebuild silver."
    )
    table: str
    column: str
    count: int
    why: str
    coordinate: str


class KeyNotUniqueError(DataError):
    code = "KEY_NOT_UNIQUE"
    repair = "rebuild"
    snapshot = "blocking"
    sentence = "two rows of {table} have one key ({columns}) at one time: {first} and {second}"
    advice = (
        "Silver was left as it is; bronze goes on. Make these columns unique at the source and take a new "
        "snapshot, or name more columns under `key`, or take it out, and rebuild silver. If a delete "
        "between the two is missing: in a topic of several partitions the next run may have it; it may be in "
        "quarantine, or lost."
    )
    table: str
    columns: str
    """Names of the key's columns."""
    first: str
    second: str
    """Coordinates."""


class KeyInTwoTopicsError(DataError):
    code = "KEY_IN_TWO_TOPICS"
    repair = "rebuild"
    sentence = (
        "{count} key(s) of {table} come from two of its topics, whose rows would overwrite each other; "
        "first {first} and {second}"
    )
    advice = (
        "Silver was left as it is; bronze goes on. If the topics have different rows (shards, tenants): set "
        "`topic_column: shard` for the table, or another name, and rebuild silver if there is one. "
        "If both have the same rows (the table was renamed): set `shared_keys: one_row`. Then clear "
        "`silver_merge`."
    )
    table: str
    count: int
    first: str
    second: str
    """Coordinates."""

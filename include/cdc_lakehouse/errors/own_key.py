"""Exit 65: the source does not keep what a table's `key` says of it."""

from __future__ import annotations

from cdc_lakehouse.errors.data import DataError


class KeyNotToldError(DataError):
    code = "KEY_NOT_TOLD"
    sentence = (
        "{count} event(s) of {table} do not tell {column}, which `key` names: {why}; first {coordinate}"
    )
    advice = (
        "Silver was left as it is; bronze goes on. Columns beside the message key need REPLICA IDENTITY FULL "
        "at the source: set it and take a new snapshot of the table, behind which older events do not count "
        "(with `history` they do). Or name other columns, or take `key` out, and delete silver's folder."
    )
    table: str
    column: str
    count: int
    why: str
    coordinate: str


class KeyNotUniqueError(DataError):
    code = "KEY_NOT_UNIQUE"
    sentence = "two rows of {table} have one key ({columns}) at one time: {first} and {second}"
    advice = (
        "Silver was left as it is; bronze goes on. Make these columns unique at the source and take a new "
        "snapshot, or name more columns under `key`, or take it out, and delete silver's folder. If a delete "
        "between the two is missing: in a topic of several partitions the next run may have it; it may be in "
        "quarantine, or lost."
    )
    table: str
    columns: str
    """Names of the key's columns."""
    first: str
    second: str
    """Coordinates."""

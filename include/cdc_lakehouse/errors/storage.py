"""Exit 65: the files of a table are not what its log says."""

from __future__ import annotations

from cdc_lakehouse.errors.data import DataError


class LogTornError(DataError):
    code = "LOG_TORN"
    sentence = "the log of {table} at {path} ends in files that were not written to their end: {names}"
    advice = (
        "The machine lost power, or the disk its data. Clear the task: ingest and merge move these files "
        "aside (`_torn` in the table's folder) and do again what the last commit did. Tables beside silver: "
        "delete the folders of silver and of these tables, they are computed anew."
    )
    table: str
    path: str
    names: str


class LogDamagedError(DataError):
    code = "LOG_DAMAGED"
    sentence = (
        "the log of {table} at {path} lacks version {version}, or it is empty, and newer ones build on it"
    )
    advice = (
        "Bring the file of that version back from a copy of the lake, then clear. Without a copy: silver, "
        "its history and its tombstones are computed anew when their folders are deleted; bronze has to be "
        "rebuilt (runbook)."
    )
    table: str
    path: str
    version: int


class DataFilesGoneError(DataError):
    code = "DATA_FILES_GONE"
    sentence = "{count} data file(s) of {table} at {path} are gone or cut: {first}; {whole}"
    advice = (
        "Nothing was read or written. Bring the files back from a copy of the lake, then clear. Without a "
        "copy: of silver delete the folder, it is computed anew. RESTORE bronze to the version named "
        "and trigger the DAG with the acknowledge_foreign that the next run prints: what came behind it is "
        "read from "
        "Kafka again (runbook)."
    )
    table: str
    path: str
    count: int
    first: str
    whole: str
    """The newest version whose files can all be there."""

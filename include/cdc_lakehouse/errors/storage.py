"""Exit 65: the files of a table do not agree with its log."""

from __future__ import annotations

from cdc_lakehouse.errors.data import DataError


class LogTornError(DataError):
    code = "LOG_TORN"
    sentence = "the log of {table} at {path} ends in files that were not written to their end: {names}"
    advice = (
        "The machine lost power, or the disk lost data. Clear `bronze_ingest`, then `silver_merge`: they "
        "move these files aside (`_torn` in the table's folder) and do again what the last commit did."
    )
    table: str
    path: str
    names: str


class LogDamagedError(DataError):
    code = "LOG_DAMAGED"
    repair = "rebuild"
    sentence = (
        "the log of {table} at {path} lacks version {version}, or it is empty, and newer ones build on it"
    )
    advice = (
        "Bring the file of that version back from a copy of the lake, then clear. Without a copy: "
        "rebuild silver, which sets the damaged folder aside. Where it is bronze's, archive the table and "
        "read it again from its source, as the operations guide says."
    )
    table: str
    path: str
    version: int


class DataFilesGoneError(DataError):
    code = "DATA_FILES_GONE"
    repair = "rebuild"
    sentence = "{count} data file(s) of {table} at {path} are gone or cut: {first}; {whole}"
    advice = (
        "Nothing was read or written. Bring the files back from a copy of the lake, then clear. Without a "
        "copy: rebuild silver from bronze. RESTORE bronze "
        "to the version that the sentence names and trigger the DAG with the acknowledge_foreign that the "
        "next run prints: the records behind that version are read from Kafka again (runbook)."
    )
    table: str
    path: str
    count: int
    first: str
    whole: str
    """The newest older version that has all its files, if there is one."""

"""Exit 78: a person must change something first."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from types import MappingProxyType
from typing import Self

from cdc_lakehouse.contract import ExitCode
from cdc_lakehouse.errors.tree import LakehouseError

MOST_NAMES = 30
"""Names in a sentence at most."""


class ConfigError(LakehouseError):
    exit_code = ExitCode.CONFIG


class InvalidPipelineError(ConfigError):
    code = "INVALID_PIPELINE"
    sentence = "{file}{where}: {problem}"
    in_lines = ("problem",)
    advice = "Correct the pipeline file; `make check PIPELINE=<name>` tries it without running anything."
    file: str
    where: str
    """`:<line>` where it is known, and the table and key concerned; may be empty."""
    problem: str


class MissingConnectionError(ConfigError):
    code = "MISSING_CONNECTION"
    sentence = "the connection {connection} is not usable: {problem}"
    advice = "In Airflow: Admin > Connections. From a shell: the environment variable of that name."
    connection: str
    problem: str


class UnsupportedTypeError(ConfigError):
    code = "UNSUPPORTED_TYPE"
    sentence = "column {column} of {table} has the type {type}, which is not supported yet"
    advice = (
        "Leave the column out until a release knows the type: drop_columns of the table, or "
        "column.exclude.list at the connector."
    )
    table: str
    column: str
    type: str


class NotSupportedYetError(ConfigError):
    code = "NOT_SUPPORTED_YET"
    sentence = "{feature} is not supported yet"
    advice = "Take it out of the pipeline or of the run's parameters."
    feature: str


class InvalidIntervalError(ConfigError):
    code = "INVALID_INTERVAL"
    sentence = "the interval {interval} cannot be made complete: {problem}"
    advice = (
        "Nothing was done. Start again with a beginning and an end that have passed, like "
        "2026-11-03T14:00:00+00:00; a time without an offset is one of the pipeline's timezone."
    )
    interval: str
    problem: str


class LedgerVersionError(ConfigError):
    code = "LEDGER_VERSION"
    sentence = "the ledger of {table} has version {found}, this release reads {known}"
    advice = "A newer release wrote this table: run that release or a newer one."
    table: str
    found: str
    known: int


class UnprovenSourceError(ConfigError):
    code = "UNPROVEN_SOURCE"
    sentence = "{table} is written by the connector {connector}, which was never proven here: {why}"
    advice = (
        "Nothing was written; what bronze and silver hold stays. Only PostgreSQL is proven. To read and "
        "merge it all the same, set `unproven_source: true` in the pipeline file: every report repeats it, "
        "and a green run does not mean that silver is right."
    )
    table: str
    connector: str
    why: str


class PlaceholderDiffersError(ConfigError):
    code = "PLACEHOLDER_DIFFERS"
    snapshot = "incremental"
    sentence = (
        "the connector {connector} of {table} sends {sent} for values that it was not given, and the "
        "pipeline expects {expected}"
    )
    advice = (
        "Nothing of the table was read: the placeholder would replace real values. Set "
        "`unavailable_value_placeholder` of the pipeline to what `unavailable.value.placeholder` of the "
        "connector is. If the connector's was changed while records waited in Kafka, the older ones carry "
        "the text of before: set a list of both. Records that were read without it carry that text as a "
        "value: once they are merged, send the rows again with an incremental snapshot."
    )
    table: str
    connector: str
    sent: str
    expected: str


class UndiscoverableTopicError(ConfigError):
    code = "UNDISCOVERABLE_TOPIC"
    sentence = "the topic {topic} cannot become a table: {problem}"
    advice = (
        "Its records wait in Kafka. List it under `tables:` of the pipeline file with a name of its own, or "
        "under `exclude:` of `discover:` if nobody needs it."
    )
    topic: str
    problem: str


class SourceEpochOldError(ConfigError):
    code = "SOURCE_EPOCH_OLD"
    sentence = "source_epoch {asked} of {table} is not above {known}, the one it stands in"
    advice = "Trigger the DAG with a higher number; every new incarnation of the source has its own."
    table: str
    asked: int
    known: int


class SourceEpochSpentError(ConfigError):
    code = "SOURCE_EPOCH_SPENT"
    repair = "retire"
    repair_options = MappingProxyType({"what": "archive"})
    sentence = (
        "source_epoch {asked} of {table} cannot be opened: the table stands in {known}, and {highest} is the "
        "highest number that a person can give"
    )
    advice = (
        "Nothing was changed. Mostly an earlier release took so high a number, and a rebuild of silver takes "
        "it again from bronze. Read the table again from its source, as the operations guide says: it is "
        "archived first, and begins with its first epoch."
    )
    table: str
    asked: int
    known: int
    highest: int


class SourceEpochTooHighError(ConfigError):
    code = "SOURCE_EPOCH_TOO_HIGH"
    sentence = (
        "source_epoch {asked} of {table} is too far above {known}, the one it stands in; {highest} is the "
        "highest now"
    )
    advice = "Trigger the DAG with the next number. Numbers that are skipped can never be used."
    table: str
    asked: int
    known: int
    highest: int


class EpochBeyondBoundsError(ConfigError):
    code = "EPOCH_BEYOND_BOUNDS"
    repair = "retire"
    repair_options = MappingProxyType({"what": "archive"})
    sentence = "bronze of {table} has the source epoch {epoch}; silver holds numbers up to {highest}"
    advice = (
        "An earlier release took it. Nothing was merged. Clear `bronze_ingest`, then `silver_merge`: the "
        "ingest numbers such epochs on behind the others. If this comes back, silver has rows of the highest "
        "number, and a rebuild stops in the same way: read the table again from its source, as the "
        "operations guide says. It is archived first."
    )
    table: str
    epoch: int
    highest: int


class DecisionOutdatedError(ConfigError):
    code = "DECISION_OUTDATED"
    sentence = "{parameter} of {table} names {named}, but the decision that is open is {standing}"
    advice = (
        "Nothing was changed. A run that is cleared keeps the decision that it was triggered with. If you "
        "mean what the sentence prints, trigger a new run with it, copied unchanged; if it prints "
        "nothing, trigger one with an empty form."
    )
    parameter: str
    table: str
    named: str
    """The decision of this run, or `nothing`."""
    standing: str
    """The decision that fits the state of the table now, or `nothing`."""


class UnknownNameError(ConfigError):
    code = "UNKNOWN_NAME"
    sentence = "{parameter} names {asked}, which is no {kind} of this run of {pipeline}; there is {known}"
    advice = "Nothing was done. Start again with a name as `make tables` lists it."
    parameter: str
    """Field of the form, or option of the command line."""
    asked: str
    kind: str
    pipeline: str
    known: str

    @classmethod
    def of(
        cls, parameter: str, asked: Iterable[str], *, known: Iterable[str], kind: str, pipeline: str
    ) -> Self | None:
        """Return the error that names what is not among the `known` names; None where all are."""
        names = set(known)
        unknown = sorted(set(asked) - names)
        if not unknown:
            return None
        return cls(
            parameter=parameter,
            asked=", ".join(map(repr, unknown)),
            kind=kind,
            pipeline=pipeline,
            known=_list_names(names, like=unknown[0]),
        )


def _list_names(names: set[str], *, like: str) -> str:
    """Return the first `MOST_NAMES` of the names, those that resemble `like` first."""
    ordered = list(dict.fromkeys([*get_close_matches(like, names), *sorted(names)]))
    more = f" and {len(ordered) - MOST_NAMES} more" if len(ordered) > MOST_NAMES else ""
    return ", ".join(ordered[:MOST_NAMES]) + more if ordered else "none"


class CaseUnknownError(ConfigError):
    code = "CASE_UNKNOWN"
    sentence = "{table} has no undecodable record {asked}; it has {held}"
    advice = (
        "Name all records of a code as this sentence, `make quarantine` and the log of `quarantine_replay` "
        "print them, or one as <topic>/<partition>@<offset>. No case of this table was closed or opened."
    )
    table: str
    asked: str
    held: str


class VersionMismatchError(ConfigError):
    code = "VERSION_MISMATCH"
    sentence = "the workers run {package} {worker}, the driver runs {driver}"
    advice = "Install the same requirements.lock where the executors run."
    package: str
    worker: str
    driver: str


class UnsafeStoreError(ConfigError):
    code = "UNSAFE_STORE"
    sentence = "commits to {root} could be lost: {reason}"
    advice = (
        "Keep the lake on a store that refuses to create what is there already, with the jar of "
        "include/log_store on Spark's class path; the documents say which were tried."
    )
    root: str
    reason: str


class KeylessUpsertError(ConfigError):
    code = "KEYLESS_UPSERT"
    snapshot = "incremental"
    sentence = "{table} has no key, and the table says `mode: upsert`"
    advice = (
        "Nothing tells its rows apart. Leave `mode` out, or set `mode: append`: silver gets a row per event. "
        "Or name the columns that tell them apart under `key`. Or give the source table a primary key, or "
        "name columns in the connector's message.key.columns, and rebuild the table from a new snapshot."
    )
    table: str


class ModeChangedError(ConfigError):
    code = "MODE_CHANGED"
    repair = "rebuild"
    sentence = "silver of {table} was written with `mode: {was}`, and the mode of the table is {now} now"
    advice = "Set `mode` back, or rebuild silver from bronze."
    table: str
    was: str
    now: str


class DeletedRowsKeptError(ConfigError):
    code = "DELETED_ROWS_KEPT"
    repair = "rebuild"
    sentence = "silver of {table} holds deleted rows (`_cdc_deleted`), and the table says `deletes: hard` now"
    advice = (
        "Where they were deleted is known by these rows only. Set `deletes: soft` again, or rebuild silver "
        "from bronze."
    )
    table: str


class InvalidShapeError(ConfigError):
    code = "INVALID_SHAPE"
    sentence = "`{setting}` of {table} cannot be applied: {problem}"
    advice = "Correct the pipeline file. Silver was left as it is; bronze has all columns and goes on."
    table: str
    setting: str
    """`columns.<key>`, `filter`, `key` or `topic_column`."""
    problem: str


class ShapeChangedError(ConfigError):
    code = "SHAPE_CHANGED"
    repair = "rebuild"
    sentence = "silver of {table} was made by other settings than the pipeline file has now: {changed}"
    advice = (
        "Its rows would be of two kinds. Set them back, or rebuild silver and its history from bronze by the "
        "settings of now."
    )
    table: str
    changed: str
    """`filter`, `key`, `topic_column`, the secret of the masks, or the columns that were something else."""


class HistoryShapeChangedError(ConfigError):
    code = "HISTORY_SHAPE_CHANGED"
    repair = "rebuild"
    sentence = "the history of {table} was made by other settings than the pipeline file has now: {changed}"
    advice = (
        "Its versions would be of two kinds, and what a mask is to hide would stay. Set them back, or "
        "rebuild silver and its history from bronze: the history then begins with what bronze holds."
    )
    table: str
    changed: str
    """As of `SHAPE_CHANGED`."""


class HistoryColumnsUnknownError(ConfigError):
    code = "HISTORY_COLUMNS_UNKNOWN"
    sentence = "`history.columns` of {table} names what is no column of it: {columns}"
    advice = "Name columns as silver has them."
    table: str
    columns: str


class NotReadyError(ConfigError):
    code = "NOT_READY"
    sentence = "{subject} is not ready: {problems}"
    advice = (
        "Nothing was written. The report has the way out of each problem; start the preflight again then."
    )
    subject: str
    problems: str

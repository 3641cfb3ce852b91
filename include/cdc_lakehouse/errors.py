"""The errors of this package, chosen by what the caller should do.

    LakehouseError                    code            exit
    ├── RetryableError                                75  another attempt may succeed
    │   ├── BrokerUnavailableError    BROKER_UNAVAILABLE
    │   ├── RegistryUnavailableError  REGISTRY_UNAVAILABLE
    │   ├── UnknownSchemaError        UNKNOWN_SCHEMA
    │   ├── StorageUnavailableError   STORAGE_UNAVAILABLE
    │   └── SupersededError           SUPERSEDED
    ├── ConfigError                                   78  a person must change something first
    │   ├── InvalidPipelineError      INVALID_PIPELINE
    │   ├── MissingConnectionError    MISSING_CONNECTION
    │   ├── UnsupportedTypeError      UNSUPPORTED_TYPE
    │   ├── NotSupportedYetError      NOT_SUPPORTED_YET
    │   ├── LedgerVersionError        LEDGER_VERSION
    │   └── VersionMismatchError      VERSION_MISMATCH
    └── DataError                                     65  the data needs a decision
        ├── OffsetsLostError          OFFSETS_LOST
        ├── TopicMissingError         TOPIC_MISSING
        ├── TopicRecreatedError       TOPIC_RECREATED
        ├── IncompatibleSchemaError   INCOMPATIBLE_SCHEMA
        ├── SchemaMisfitError         SCHEMA_MISFIT
        ├── KeySchemaDriftError       KEY_SCHEMA_DRIFT
        ├── SchemaConflictError       SCHEMA_CONFLICT
        ├── UnsupportedEventError     UNSUPPORTED_EVENT
        ├── ForeignCommitError        FOREIGN_COMMIT
        ├── BronzeBehindError         BRONZE_BEHIND
        └── LedgerLostError           LEDGER_LOST

Each class has a constant `sentence` whose blanks are its own fields, and an `advice`.
Everything else that is raised is a bug (exit 70).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, dataclass_transform

from cdc_lakehouse.contract import ExitCode, TableError


@dataclass_transform(kw_only_default=True, eq_default=False)
class LakehouseError(Exception):
    """Root of the tree; raise one of the leaves. Their annotated names are what they are raised with."""

    code: ClassVar[str] = ""
    exit_code: ClassVar[ExitCode]
    sentence: ClassVar[str] = ""
    advice: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        dataclass(eq=False, kw_only=True)(cls)

    def __str__(self) -> str:
        return self.sentence.format(**vars(self))

    def as_table_error(self) -> TableError:
        return TableError(code=self.code, exit_code=self.exit_code, sentence=str(self), advice=self.advice)


# --- 75: try again -------------------------------------------------------------------------


class RetryableError(LakehouseError):
    exit_code = ExitCode.RETRY


class BrokerUnavailableError(RetryableError):
    code = "BROKER_UNAVAILABLE"
    sentence = "Kafka at {bootstrap} did not answer: {reason}"
    advice = (
        "Nothing was lost. The next try continues where the table stands; look at the broker if it persists."
    )
    bootstrap: str
    reason: str


class RegistryUnavailableError(RetryableError):
    code = "REGISTRY_UNAVAILABLE"
    sentence = "the schema registry at {url} did not answer: {reason}"
    advice = (
        "Nothing was written or quarantined. Start the registry again; the next try reads the same records."
    )
    url: str
    reason: str


class UnknownSchemaError(RetryableError):
    code = "UNKNOWN_SCHEMA"
    sentence = "the registry does not know {schemas}, needed by records of {table} in {records}"
    advice = (
        "Nothing was written or quarantined. If it stays: check that the registry connection names the "
        "registry the connector writes to, and bring the schema back there."
    )
    table: str
    schemas: str
    records: str
    """Where they are, as closely as it is known."""


class StorageUnavailableError(RetryableError):
    code = "STORAGE_UNAVAILABLE"
    sentence = "the lake at {root} could not be read or written: {reason}"
    advice = "Check that the storage is mounted, has room and lets this user write; then clear the task."
    root: str
    reason: str


class SupersededError(RetryableError):
    code = "SUPERSEDED"
    sentence = "another attempt advanced {table} from step {seq} while this one ({attempt}) was working"
    advice = "Nothing is doubled: this attempt wrote nothing. The next try continues from the new state."
    table: str
    seq: int
    attempt: str


# --- 78: change something first ------------------------------------------------------------


class ConfigError(LakehouseError):
    exit_code = ExitCode.CONFIG


class InvalidPipelineError(ConfigError):
    code = "INVALID_PIPELINE"
    sentence = "{file}{where}: {problem}"
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


class LedgerVersionError(ConfigError):
    code = "LEDGER_VERSION"
    sentence = "the ledger of {table} has version {found}, this release reads {known}"
    advice = "A newer release wrote this table: run that release or a newer one."
    table: str
    found: str
    known: int


class VersionMismatchError(ConfigError):
    code = "VERSION_MISMATCH"
    sentence = "the workers run {package} {worker}, the driver runs {driver}"
    advice = "Install the same requirements.lock where the executors run."
    package: str
    worker: str
    driver: str


# --- 65: the data needs a decision -----------------------------------------------------------


class DataError(LakehouseError):
    exit_code = ExitCode.DATA


class OffsetsLostError(DataError):
    code = "OFFSETS_LOST"
    sentence = (
        "{table} stands at offset {next_offset} of {topic}/{partition}, but Kafka holds {earliest}..{latest}"
    )
    advice = "Retention removed the records between, or the topic was cut. Take a new snapshot of the table."
    table: str
    topic: str
    partition: int
    next_offset: int
    earliest: int
    latest: int


class TopicMissingError(DataError):
    code = "TOPIC_MISSING"
    sentence = "the topic {topic} of {table} does not exist in Kafka"
    advice = "Check `topics:` in the pipeline file, and that the connector captures the table and is running."
    table: str
    topic: str


class TopicRecreatedError(DataError):
    code = "TOPIC_RECREATED"
    sentence = "the topic {topic} of {table} was deleted and made again (id {old_id}, now {new_id})"
    advice = "Its offsets mean something else now. Rebuild the table from a new snapshot."
    table: str
    topic: str
    old_id: str
    new_id: str


class IncompatibleSchemaError(DataError):
    code = "INCOMPATIBLE_SCHEMA"
    sentence = "column {column} of {table} was {was} and is now {now}"
    advice = "The change cannot be applied without loss. Rebuild the table or undo the change at the source."
    table: str
    column: str
    was: str
    now: str


class SchemaMisfitError(DataError):
    code = "SCHEMA_MISFIT"
    sentence = "{count} record(s) of {table} hold values that fit no type of the table: {detail}"
    advice = "Bronze keeps them with their bytes. Undo the change at the source, or rebuild the table."
    table: str
    count: int
    detail: str


class KeySchemaDriftError(DataError):
    code = "KEY_SCHEMA_DRIFT"
    sentence = "the key of {table} was ({was}) and is now ({now})"
    advice = "Rows of both keys cannot live in one table. Rebuild the table from a new snapshot."
    table: str
    was: str
    now: str


class SchemaConflictError(DataError):
    code = "SCHEMA_CONFLICT"
    sentence = "registry {registry} gives {table} another schema {schema} than the one kept in {archived}"
    advice = (
        "The registry lost its data and gives ids away again. Bring its old data back; the runbook has the "
        "other way. Nothing was written."
    )
    table: str
    schema: str
    """Id or GUID."""
    registry: str
    archived: str


class UnsupportedEventError(DataError):
    code = "UNSUPPORTED_EVENT"
    sentence = (
        "{table} has {count} record(s) of a kind that is not supported yet: {kind}, first at {coordinate}"
    )
    advice = "Bronze keeps every record; silver of this table waits for a release that applies them."
    table: str
    kind: str
    count: int
    coordinate: str


class ForeignCommitError(DataError):
    code = "FOREIGN_COMMIT"
    sentence = "version {version} of {table} ({operation}) changed data and is not ours"
    advice = "Somebody restored or edited the table by hand. Rebuild the table; the runbook says how."
    table: str
    version: int
    operation: str


class BronzeBehindError(DataError):
    code = "BRONZE_BEHIND"
    sentence = "silver of {table} has applied {source}/{partition} up to {applied}, but bronze ends at {end}"
    advice = "Bronze was restored or replaced. Bring back the newer bronze, or rebuild silver from this one."
    table: str
    source: str
    partition: int
    applied: int
    end: int


class LedgerLostError(DataError):
    code = "LEDGER_LOST"
    sentence = "{table} at {path} holds data but no commit states its progress"
    advice = (
        "Move the folder away and let the table be built again, or restore a version that has its ledger."
    )
    table: str
    path: str

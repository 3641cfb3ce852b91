"""Exit 75: another attempt may succeed."""

from __future__ import annotations

from cdc_lakehouse.contract import ExitCode
from cdc_lakehouse.errors.tree import LakehouseError


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
        "Nothing was written or quarantined. The next try quarantines these records if the registry answers, "
        "knows all schemas of the topic and still not this one. Check that the registry connection names the "
        "registry the connector writes to, and bring the schema back there."
    )
    table: str
    schemas: str
    records: str
    """Where they are, as closely as it is known."""


class SourceUnavailableError(RetryableError):
    code = "SOURCE_UNAVAILABLE"
    sentence = "the source database at {address} did not answer: {reason}"
    advice = "Nothing was compared, and nothing is wrong with the lake. Look at the database, then clear."
    address: str
    reason: str


class ConnectUnavailableError(RetryableError):
    code = "CONNECT_UNAVAILABLE"
    sentence = "Kafka Connect at {url} did not answer: {reason}"
    advice = "Nothing is wrong with the lake; whether the connectors run is unknown. Look at Kafka Connect."
    url: str
    reason: str


class StorageUnavailableError(RetryableError):
    code = "STORAGE_UNAVAILABLE"
    sentence = "the lake at {root} could not be read or written: {reason}"
    advice = "Check that the storage is mounted, has room and lets this user write; then clear the task."
    root: str
    reason: str


class BatchMisfitError(RetryableError):
    code = "BATCH_MISFIT"
    sentence = "what was written of a batch of {table} cannot be what Kafka holds: {problem}"
    advice = (
        "Nothing was committed. The next try reads the same offsets again; if it stays, keep the log: it is "
        "a fault of this product or of the broker."
    )
    table: str
    problem: str


class FilesGoneError(RetryableError):
    code = "FILES_GONE"
    sentence = (
        "{count} file(s) that this attempt wrote for {table} are gone or cut before their commit: {first}"
    )
    advice = (
        "Nothing was committed; the next try writes them again. If it stays, something else deletes below "
        "the lake: VACUUM of another tool with a short retention, a lifecycle rule of the bucket, a "
        "cleanup job."
    )
    table: str
    count: int
    first: str


class TableChangedError(RetryableError):
    code = "TABLE_CHANGED"
    sentence = "{table} was changed by somebody else while a batch was being committed: {reason}"
    advice = (
        "Nothing was committed. The next try starts from the table as it is now; if it stays, look at who "
        "else writes to the table."
    )
    table: str
    reason: str


class TopicUnavailableError(RetryableError):
    code = "TOPIC_UNAVAILABLE"
    sentence = "Kafka did not tell where {topic} of {table} stands: {reason}"
    advice = "Nothing was lost. A partition has no leader, or a broker is away: look there if it persists."
    table: str
    topic: str
    reason: str


class KafkaMovedError(RetryableError):
    code = "KAFKA_MOVED"
    sentence = "Kafka changed under {table} while it was being read: {what}"
    advice = "Nothing of it was written. The next try looks again, and says so if a person has to decide."
    table: str
    what: str


class CheckpointTakenError(RetryableError):
    code = "CHECKPOINT_TAKEN"
    sentence = "the scratch checkpoint of this attempt on {table} is there already: {path}"
    advice = "Nothing was read or written. The next try has a checkpoint of its own."
    table: str
    path: str


class SupersededError(RetryableError):
    code = "SUPERSEDED"
    sentence = (
        "another attempt advanced {table} from step {seq}, or its folder was deleted, while this one "
        "({attempt}) was working"
    )
    advice = "Nothing is doubled: this attempt wrote nothing. The next try continues from the new state."
    table: str
    seq: int
    attempt: str

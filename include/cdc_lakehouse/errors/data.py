"""Exit 65: the data needs a decision."""

from __future__ import annotations

from cdc_lakehouse.contract import ExitCode
from cdc_lakehouse.errors.tree import LakehouseError


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


class QuarantineLimitError(DataError):
    code = "QUARANTINE_LIMIT"
    sentence = "{bad} of {rows} record(s) of {table} in this run cannot be decoded ({by_code}), first {first}"
    advice = (
        "Nothing of this batch was written, and Kafka still has it. So many at once are a fault of the "
        "producer or of its schemas: repair it. If they are what they are, raise the table's "
        "`quarantine_limit`; bronze then keeps them with their bytes."
    )
    table: str
    bad: int
    rows: int
    by_code: str
    first: str


class QuarantineOpenError(DataError):
    code = "QUARANTINE_OPEN"
    sentence = (
        "{count} record(s) of {table} in bronze could not be decoded, and it says `on_quarantine: stop`"
    )
    advice = (
        "Silver was left as it is. `make quarantine` lists them. Set `on_quarantine: continue` to merge the "
        "others without them."
    )
    table: str
    count: int


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

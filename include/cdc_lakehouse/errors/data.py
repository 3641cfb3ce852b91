"""Exit 65: the data needs a decision."""

from __future__ import annotations

from cdc_lakehouse.contract import ExitCode
from cdc_lakehouse.errors.tree import LakehouseError


class DataError(LakehouseError):
    exit_code = ExitCode.DATA


class OffsetsLostError(DataError):
    code = "OFFSETS_LOST"
    snapshot = "blocking"
    sentence = "Kafka no longer holds records that {table} has not read; accept_gap: `{decision}`"
    advice = (
        "Retention was faster than the ingest, or the topic is gone. To go on without these offsets trigger "
        "the DAG with this accept_gap, copied unchanged: the ledger keeps them as missing. Then take a "
        "new snapshot."
    )
    table: str
    decision: str
    """`<table>=<topic>/<partition>:<from>-<until>,…`, all of them; `until` is the first that is there."""


class IntervalIncompleteError(DataError):
    code = "INTERVAL_INCOMPLETE"
    snapshot = "incremental"
    sentence = "{table} misses offsets of the interval, and Kafka no longer holds them: {offsets}"
    advice = (
        "All else of the interval was done, as the report says. The ledger keeps these offsets as missing. "
        "Take an incremental snapshot of the table: it sends the rows as they are now."
    )
    table: str
    offsets: str


class DeletesLimitError(DataError):
    code = "DELETES_LIMIT"
    sentence = (
        "the merge would take {rows} of the {of} rows of {table} out of {where}, and `deletes_limit` allows "
        "{limit}: {cause}; MD5 of some keys: {examples}; if they are gone at the source, "
        "accept_deletes: `{decision}`"
    )
    advice = (
        "Nothing was changed; bronze goes on. A snapshot of a part of its table (additional-conditions, "
        "snapshot.select.statement.overrides) looks like a whole one: take a whole one, and the next merge "
        "goes on by itself. If the rows are really gone, trigger the DAG with the value of this sentence in "
        "its form."
    )
    snapshot = "blocking"
    table: str
    rows: int
    of: int
    where: str
    limit: str
    cause: str
    examples: str
    decision: str
    """Text that is pasted into the form."""


class FileDamagedError(DataError):
    code = "FILE_DAMAGED"
    sentence = "a file of {table} is not what was written: {what}"
    advice = (
        "Nothing was changed. The path says which layer: bronze is mended from Kafka or a backup, silver and "
        "its history from bronze; see *A file is damaged* in the operations guide. Look at the disk, too."
    )
    table: str
    what: str


class BronzeRowsMissingError(DataError):
    code = "BRONZE_ROWS_MISSING"
    sentence = "bronze of {table} gives {read} row(s) of {ranges}, and its ledgers committed {expected}"
    advice = (
        "Silver was left as it is. A file of bronze is damaged, or was changed: mend as *A file is damaged* "
        "in the operations guide says, and clear the task."
    )
    table: str
    read: int
    expected: int
    ranges: str


class TopicMissingError(DataError):
    code = "TOPIC_MISSING"
    sentence = "the topic {topic} of {table} does not exist in Kafka{decision}"
    advice = (
        "Check that the connector captures the table and is running, and `topics:` if the pipeline file "
        "lists the table. If the table was dropped for good: trigger the DAG with the stop_reading that the "
        "sentence prints, copied unchanged. Its rows stay; if the topic comes back, it is read."
    )
    table: str
    topic: str
    decision: str
    """`; stop_reading: …`; empty where the table never read a record."""


class TopicRecreatedError(DataError):
    code = "TOPIC_RECREATED"
    snapshot = "blocking"
    sentence = (
        "the topic {topic} of {table} was deleted and made again (id {old_id}, now {new_id}); "
        "the table had read {read}, the new one holds {held}"
    )
    advice = (
        "Its offsets mean something else now. Trigger the DAG with source_epoch for this table: it reads the "
        "new topic from its first record on. What the old one held beyond is lost: take a new snapshot."
    )
    table: str
    topic: str
    old_id: str
    new_id: str
    read: str
    held: str


class LogCutError(DataError):
    code = "LOG_CUT"
    snapshot = "blocking"
    sentence = "{table} has read {read} of {topic}, but Kafka's log of it holds {held}"
    advice = (
        "Kafka lost the end of its log and gives the offsets away again. Trigger the DAG with source_epoch "
        "for this table: it reads the log again from its first record on. Then take a new snapshot."
    )
    table: str
    topic: str
    read: str
    held: str


class ClusterChangedError(DataError):
    code = "CLUSTER_CHANGED"
    sentence = "{table} was read from the Kafka cluster {old_id}, but the connection leads to {new_id}"
    advice = (
        "If the connection is wrong, correct it and clear. If the cluster was replaced: trigger the DAG with "
        "source_epoch for this table, and it reads the topics of the new one from their first record on."
    )
    table: str
    old_id: str
    new_id: str


class IncompatibleSchemaError(DataError):
    code = "INCOMPATIBLE_SCHEMA"
    repair = "rebuild"
    sentence = "column {column} of {table} was {was} and is now {now}"
    advice = (
        "Bronze was made anew with a type that silver cannot take over without loss. Bring the older bronze "
        "back, or rebuild silver and its history from this one."
    )
    table: str
    column: str
    was: str
    now: str


class SchemaChangedError(DataError):
    code = "SCHEMA_CHANGED"
    sentence = "the columns of {table} changed, and it says `on_schema_change: strict`: {diff}"
    advice = (
        "Silver was left as it is; bronze goes on. To take the change: set `on_schema_change: evolve` for "
        "the table, clear `silver_merge`, and set it back. Nothing else has to be done."
    )
    table: str
    diff: str
    """All columns that changed, with the schema that is the first to say so where it is known."""


class ColumnDroppedError(DataError):
    code = "COLUMN_DROPPED"
    sentence = "the source of {table} no longer sends {columns}, and the table says `on_dropped_column: stop`"
    advice = (
        "Silver was left as it is; bronze goes on. To go on set `on_dropped_column: keep` (rows keep the "
        "value that was sent last) or `as_null` (it becomes NULL in all rows of silver; bronze keeps it), "
        "clear `silver_merge`, and set it back."
    )
    table: str
    columns: str


class SchemaMisfitError(DataError):
    code = "SCHEMA_MISFIT"
    sentence = "{count} record(s) of {table} hold values that fit no type of the table: {diff}"
    advice = (
        "Bronze keeps them with their bytes and goes on. Set `on_schema_change: side_column` for the table "
        "and clear `quarantine_replay`: the values get a column beside the old one. Or undo the change at "
        "the source and close these cases, or rebuild the table."
    )
    table: str
    count: int
    diff: str
    """Column, what it was, what it is now, since which record and schema."""


class QuarantineLimitError(DataError):
    code = "QUARANTINE_LIMIT"
    sentence = "{bad} of {rows} record(s) of {table} {when} cannot be decoded ({by_code}), first {first}"
    advice = (
        "Nothing of this batch was written, and Kafka still has it. So many undecodable records, or a run of "
        "nothing else, point to a fault of the producer or of its schemas: repair it. The table goes on when "
        "enough records behind them can be decoded. To take these records as they are, raise the table's "
        "`quarantine_limit` (`share: 1` takes any share of a run); bronze keeps them with their bytes."
    )
    table: str
    bad: int
    rows: int
    when: str
    """The runs that are counted."""
    by_code: str
    first: str


class QuarantineOpenError(DataError):
    code = "QUARANTINE_OPEN"
    sentence = (
        "{count} record(s) of {table} in bronze could not be decoded, and it says `on_quarantine: stop`"
    )
    advice = (
        "Silver was left as it is. `make quarantine` lists them. Clear `quarantine_replay` of the "
        "maintenance DAG once they can be decoded, or set `on_quarantine: continue` to merge without them."
    )
    table: str
    count: int


class UnknownKeyHeldError(DataError):
    code = "UNKNOWN_KEY_HELD"
    sentence = (
        "{count} record(s) of {table} in bronze could not be decoded, not even their keys, and it says "
        "`on_quarantine: hold`; first {first}"
    )
    advice = (
        "Which keys to hold is unknown, so silver was left as it is. Clear `quarantine_replay` of the "
        "maintenance DAG once they can be decoded, or set `on_quarantine: continue` to merge without them."
    )
    table: str
    count: int
    first: str


class KeySchemaDriftError(DataError):
    code = "KEY_SCHEMA_DRIFT"
    snapshot = "incremental"
    sentence = "the key of {table} was ({was}) and is now ({now})"
    advice = (
        "Rows of both keys cannot live in one table. Bronze keeps these records with their bytes and goes "
        "on; silver was left as it is. If a type of the key only grew (int to bigint) and an earlier release "
        "met it: clear `quarantine_replay`. Else rebuild the table from a new snapshot, or undo the change "
        "at the source and close these cases. A table that had no key may also go on as it was: `mode: "
        "append`."
    )
    table: str
    was: str
    now: str


class SchemaConflictError(DataError):
    code = "SCHEMA_CONFLICT"
    sentence = "registry {registry} gives {table} another schema {schema} than the one kept in {archived}"
    advice = (
        "The registry lost its data and gives ids away again. Bring its old data back; if it is lost, set "
        "`generation` in the extra of the registry's connection, as the runbook says. Nothing was written."
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
    repair = "rebuild"
    sentence = (
        "version {version} of {table} ({operation}) changed data and is not ours; ours was {ours}{decision}"
    )
    advice = (
        "Somebody restored or edited the table by hand. Bronze: RESTORE it to our version, or leave it as it "
        "is; then trigger the DAG with the acknowledge_foreign that the newest run prints, copied "
        "unchanged. Silver: rebuild it."
    )
    table: str
    version: int
    operation: str
    ours: int
    """Newest version whose data is as we wrote it."""
    decision: str
    """`; acknowledge_foreign: …` for a bronze table, else empty."""


class ForeignRowsError(DataError):
    code = "FOREIGN_ROWS"
    sentence = (
        "bronze of {table} cannot be acknowledged as it is, compared with our version {ours}: {problem}"
    )
    advice = (
        "RESTORE the table to that version, then trigger the DAG with the acknowledge_foreign that the next "
        "run prints."
    )
    table: str
    ours: int
    problem: str


class BronzeBehindError(DataError):
    code = "BRONZE_BEHIND"
    repair = "rebuild"
    sentence = "silver of {table} has applied {source}/{partition} up to {applied}, but bronze ends at {end}"
    advice = "Bronze was restored or replaced. Bring back the newer bronze, or rebuild silver from this one."
    table: str
    source: str
    partition: int
    applied: int
    end: int


class SilverDiffersError(DataError):
    code = "SILVER_DIFFERS"
    repair = "rebuild"
    snapshot = "incremental"
    sentence = (
        "silver of {table} is not what its source was at {mark}, and nothing that is still to come changes "
        "that: {count} key(s) ({kinds}); {known}"
    )
    advice = (
        "The run report in the lake names keys and columns. What the table lacks by its own word comes "
        "first: repair that, then clear. If it lacks nothing: did somebody change silver by hand, or the "
        "source without its log? Send the rows again with an incremental snapshot, or rebuild "
        "silver from bronze."
    )
    table: str
    mark: str
    """The source's log position, as PostgreSQL writes it."""
    count: int
    kinds: str
    known: str
    """What the table itself says it lacks."""


class ColumnsUntoldError(DataError):
    code = "COLUMNS_UNTOLD"
    snapshot = "incremental"
    sentence = (
        "{count} row(s) of {table} differ from the source in nothing but {columns}: no event has sent these "
        "rows since the columns were added"
    )
    advice = (
        "Silver has all that was sent: an ALTER TABLE sends no rows. Send them again with an incremental "
        "snapshot, and clear `verify` once they were merged."
    )
    table: str
    count: int
    columns: str
    """Each column with the time when it was added and the schema that first had it."""


class WrongTableError(DataError):
    code = "WRONG_TABLE"
    sentence = "the folder {path} of {table} holds {found}"
    advice = "Folders were swapped or copied. Move each back to its own place, then clear."
    table: str
    path: str
    found: str


class LedgerLostError(DataError):
    code = "LEDGER_LOST"
    repair = "rebuild"
    sentence = "{table} at {path} holds data but no commit states its progress"
    advice = (
        "Silver: rebuild it. Bronze: restore a version that has its ledger, or read the table again from its "
        "source: the runbook says how, with the DAGs `retire` and `resync`."
    )
    table: str
    path: str

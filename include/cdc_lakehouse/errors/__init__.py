"""The errors of this package, chosen by what the caller should do.

    LakehouseError                    code            exit
    ├── RetryableError                                75  another attempt may succeed
    │   ├── BrokerUnavailableError    BROKER_UNAVAILABLE
    │   ├── RegistryUnavailableError  REGISTRY_UNAVAILABLE
    │   ├── UnknownSchemaError        UNKNOWN_SCHEMA
    │   ├── SourceUnavailableError    SOURCE_UNAVAILABLE
    │   ├── ConnectUnavailableError   CONNECT_UNAVAILABLE
    │   ├── StorageUnavailableError   STORAGE_UNAVAILABLE
    │   ├── BatchMisfitError          BATCH_MISFIT
    │   ├── FilesGoneError            FILES_GONE
    │   ├── TableChangedError         TABLE_CHANGED
    │   ├── TopicUnavailableError     TOPIC_UNAVAILABLE
    │   ├── KafkaMovedError           KAFKA_MOVED
    │   ├── CheckpointTakenError      CHECKPOINT_TAKEN
    │   ├── SupersededError           SUPERSEDED
    │   ├── ResyncNotEndedError       RESYNC_NOT_ENDED
    │   └── RepairWaitsError          REPAIR_WAITS
    ├── ConfigError                                   78  a person must change something first
    │   ├── InvalidPipelineError      INVALID_PIPELINE
    │   ├── MissingConnectionError    MISSING_CONNECTION
    │   ├── UnsupportedTypeError      UNSUPPORTED_TYPE
    │   ├── NotSupportedYetError      NOT_SUPPORTED_YET
    │   ├── InvalidIntervalError      INVALID_INTERVAL
    │   ├── LedgerVersionError        LEDGER_VERSION
    │   ├── UnprovenSourceError       UNPROVEN_SOURCE
    │   ├── PlaceholderDiffersError   PLACEHOLDER_DIFFERS
    │   ├── UndiscoverableTopicError  UNDISCOVERABLE_TOPIC
    │   ├── SourceEpochOldError       SOURCE_EPOCH_OLD
    │   ├── SourceEpochSpentError     SOURCE_EPOCH_SPENT
    │   ├── SourceEpochTooHighError   SOURCE_EPOCH_TOO_HIGH
    │   ├── EpochBeyondBoundsError    EPOCH_BEYOND_BOUNDS
    │   ├── DecisionOutdatedError     DECISION_OUTDATED
    │   ├── UnknownNameError          UNKNOWN_NAME
    │   ├── CaseUnknownError          CASE_UNKNOWN
    │   ├── VersionMismatchError      VERSION_MISMATCH
    │   ├── UnsafeStoreError          UNSAFE_STORE
    │   ├── KeylessUpsertError        KEYLESS_UPSERT
    │   ├── ModeChangedError          MODE_CHANGED
    │   ├── DeletedRowsKeptError      DELETED_ROWS_KEPT
    │   ├── InvalidShapeError         INVALID_SHAPE
    │   ├── ShapeChangedError         SHAPE_CHANGED
    │   ├── HistoryColumnsUnknownError HISTORY_COLUMNS_UNKNOWN
    │   ├── HistoryShapeChangedError  HISTORY_SHAPE_CHANGED
    │   ├── NotReadyError             NOT_READY
    │   ├── RepairRefusedError        REPAIR_REFUSED
    │   └── PlanChangedError          PLAN_CHANGED
    └── DataError                                     65  the data needs a decision
        ├── OffsetsLostError          OFFSETS_LOST
        ├── IntervalIncompleteError   INTERVAL_INCOMPLETE
        ├── DeletesLimitError         DELETES_LIMIT
        ├── FileDamagedError          FILE_DAMAGED
        ├── BronzeRowsMissingError    BRONZE_ROWS_MISSING
        ├── TopicMissingError         TOPIC_MISSING
        ├── TopicRecreatedError       TOPIC_RECREATED
        ├── LogCutError               LOG_CUT
        ├── ClusterChangedError       CLUSTER_CHANGED
        ├── IncompatibleSchemaError   INCOMPATIBLE_SCHEMA
        ├── SchemaChangedError        SCHEMA_CHANGED
        ├── ColumnDroppedError        COLUMN_DROPPED
        ├── SchemaMisfitError         SCHEMA_MISFIT
        ├── QuarantineLimitError      QUARANTINE_LIMIT
        ├── QuarantineOpenError       QUARANTINE_OPEN
        ├── UnknownKeyHeldError       UNKNOWN_KEY_HELD
        ├── KeySchemaDriftError       KEY_SCHEMA_DRIFT
        ├── KeyNotToldError           KEY_NOT_TOLD
        ├── KeyNotUniqueError         KEY_NOT_UNIQUE
        ├── KeyInTwoTopicsError       KEY_IN_TWO_TOPICS
        ├── SchemaConflictError       SCHEMA_CONFLICT
        ├── UnsupportedEventError     UNSUPPORTED_EVENT
        ├── ForeignCommitError        FOREIGN_COMMIT
        ├── ForeignRowsError          FOREIGN_ROWS
        ├── BronzeBehindError         BRONZE_BEHIND
        ├── SourceWentBackError       SOURCE_WENT_BACK
        ├── NotFreshError             NOT_FRESH
        ├── SilverDiffersError        SILVER_DIFFERS
        ├── ColumnsUntoldError        COLUMNS_UNTOLD
        ├── SourceTableMissingError   SOURCE_TABLE_MISSING
        ├── LogTornError              LOG_TORN
        ├── LogDamagedError           LOG_DAMAGED
        ├── DataFilesGoneError        DATA_FILES_GONE
        ├── WrongTableError           WRONG_TABLE
        ├── LedgerLostError           LEDGER_LOST
        ├── OptimizeOverdueError      OPTIMIZE_OVERDUE
        └── RepairNotVerifiedError    REPAIR_NOT_VERIFIED

Each class has a constant `sentence` whose blanks are its own fields, and an `advice`.
Everything else that is raised is a bug (exit 70).
"""

from __future__ import annotations

from cdc_lakehouse.errors.configuration import (
    CaseUnknownError,
    ConfigError,
    DecisionOutdatedError,
    DeletedRowsKeptError,
    EpochBeyondBoundsError,
    HistoryColumnsUnknownError,
    HistoryShapeChangedError,
    InvalidIntervalError,
    InvalidPipelineError,
    InvalidShapeError,
    KeylessUpsertError,
    LedgerVersionError,
    MissingConnectionError,
    ModeChangedError,
    NotReadyError,
    NotSupportedYetError,
    PlaceholderDiffersError,
    ShapeChangedError,
    SourceEpochOldError,
    SourceEpochSpentError,
    SourceEpochTooHighError,
    UndiscoverableTopicError,
    UnknownNameError,
    UnprovenSourceError,
    UnsafeStoreError,
    UnsupportedTypeError,
    VersionMismatchError,
)
from cdc_lakehouse.errors.data import (
    BronzeBehindError,
    BronzeRowsMissingError,
    ClusterChangedError,
    ColumnDroppedError,
    ColumnsUntoldError,
    DataError,
    DeletesLimitError,
    FileDamagedError,
    ForeignCommitError,
    ForeignRowsError,
    IncompatibleSchemaError,
    IntervalIncompleteError,
    KeySchemaDriftError,
    LedgerLostError,
    LogCutError,
    OffsetsLostError,
    QuarantineLimitError,
    QuarantineOpenError,
    SchemaChangedError,
    SchemaConflictError,
    SchemaMisfitError,
    SilverDiffersError,
    TopicMissingError,
    TopicRecreatedError,
    UnknownKeyHeldError,
    UnsupportedEventError,
    WrongTableError,
)
from cdc_lakehouse.errors.maintenance import OptimizeOverdueError
from cdc_lakehouse.errors.own_key import (
    KeyInTwoTopicsError,
    KeyNotToldError,
    KeyNotUniqueError,
)
from cdc_lakehouse.errors.repair import (
    PlanChangedError,
    RepairNotVerifiedError,
    RepairRefusedError,
    RepairWaitsError,
    ResyncNotEndedError,
)
from cdc_lakehouse.errors.retryable import (
    BatchMisfitError,
    BrokerUnavailableError,
    CheckpointTakenError,
    ConnectUnavailableError,
    FilesGoneError,
    KafkaMovedError,
    RegistryUnavailableError,
    RetryableError,
    SourceUnavailableError,
    StorageUnavailableError,
    SupersededError,
    TableChangedError,
    TopicUnavailableError,
    UnknownSchemaError,
)
from cdc_lakehouse.errors.source import (
    NotFreshError,
    SourceTableMissingError,
    SourceWentBackError,
)
from cdc_lakehouse.errors.storage import (
    DataFilesGoneError,
    LogDamagedError,
    LogTornError,
)
from cdc_lakehouse.errors.tree import (
    LakehouseError,
)

__all__ = [
    "BatchMisfitError",
    "BrokerUnavailableError",
    "BronzeBehindError",
    "BronzeRowsMissingError",
    "CaseUnknownError",
    "CheckpointTakenError",
    "ClusterChangedError",
    "ColumnDroppedError",
    "ColumnsUntoldError",
    "ConfigError",
    "ConnectUnavailableError",
    "DataError",
    "DataFilesGoneError",
    "DecisionOutdatedError",
    "DeletedRowsKeptError",
    "DeletesLimitError",
    "EpochBeyondBoundsError",
    "FileDamagedError",
    "FilesGoneError",
    "ForeignCommitError",
    "ForeignRowsError",
    "HistoryColumnsUnknownError",
    "HistoryShapeChangedError",
    "IncompatibleSchemaError",
    "IntervalIncompleteError",
    "InvalidIntervalError",
    "InvalidPipelineError",
    "InvalidShapeError",
    "KafkaMovedError",
    "KeyInTwoTopicsError",
    "KeyNotToldError",
    "KeyNotUniqueError",
    "KeySchemaDriftError",
    "KeylessUpsertError",
    "LakehouseError",
    "LedgerLostError",
    "LedgerVersionError",
    "LogCutError",
    "LogDamagedError",
    "LogTornError",
    "MissingConnectionError",
    "ModeChangedError",
    "NotFreshError",
    "NotReadyError",
    "NotSupportedYetError",
    "OffsetsLostError",
    "OptimizeOverdueError",
    "PlaceholderDiffersError",
    "PlanChangedError",
    "QuarantineLimitError",
    "QuarantineOpenError",
    "RegistryUnavailableError",
    "RepairNotVerifiedError",
    "RepairRefusedError",
    "RepairWaitsError",
    "ResyncNotEndedError",
    "RetryableError",
    "SchemaChangedError",
    "SchemaConflictError",
    "SchemaMisfitError",
    "ShapeChangedError",
    "SilverDiffersError",
    "SourceEpochOldError",
    "SourceEpochSpentError",
    "SourceEpochTooHighError",
    "SourceTableMissingError",
    "SourceUnavailableError",
    "SourceWentBackError",
    "StorageUnavailableError",
    "SupersededError",
    "TableChangedError",
    "TopicMissingError",
    "TopicRecreatedError",
    "TopicUnavailableError",
    "UndiscoverableTopicError",
    "UnknownKeyHeldError",
    "UnknownNameError",
    "UnknownSchemaError",
    "UnprovenSourceError",
    "UnsafeStoreError",
    "UnsupportedEventError",
    "UnsupportedTypeError",
    "VersionMismatchError",
    "WrongTableError",
]

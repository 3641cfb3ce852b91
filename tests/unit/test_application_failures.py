"""What the texts of real exceptions mean to the caller."""

from __future__ import annotations

import pytest

from cdc_lakehouse.application.failures import as_table_error, is_conflict, translated
from cdc_lakehouse.contract import ExitCode
from cdc_lakehouse.errors import (
    BrokerUnavailableError,
    FileDamagedError,
    KafkaMovedError,
    OffsetsLostError,
    StorageUnavailableError,
    SupersededError,
    TableChangedError,
)

BROKER = [
    "An error occurred while calling o71.load.\n: org.apache.kafka.common.errors.TimeoutException: "
    "Timed out waiting for a node assignment. Call: describeTopics",
    "org.apache.kafka.common.KafkaException: Failed to create new KafkaAdminClient",
    "Caused by: org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed",
    "org.apache.spark.SparkException: Failed to construct kafka consumer",
]
CONFLICT = [
    "[DELTA_CONCURRENT_APPEND.WITHOUT_HINT] Transaction conflict detected.",
    "[DELTA_CONCURRENT_TRANSACTION] ConcurrentTransactionException: This error occurs when multiple"
    " streaming queries are using the same checkpoint",
    "io.delta.exceptions.ConcurrentWriteException: A concurrent transaction has written new data",
    "io.delta.exceptions.ConcurrentDeleteReadException: a file was deleted",
]
STORAGE = [
    "java.io.IOException: No space left on device",
    "java.io.FileNotFoundException: /lake/bronze/part-0.parquet (Permission denied)",
    "java.nio.file.FileSystemException: /lake: Read-only file system",
]
OBJECT_STORE = [
    "java.nio.file.AccessDeniedException: s3a://b/lake: software.amazon.awssdk.services.s3.model.S3Exception:"
    " (Service: S3, Status Code: 403)",
    "org.apache.hadoop.fs.s3a.AWSClientIOException: getFileStatus on s3a://b/lake: Unable to execute request",
]
DRIVER = [
    "An error occurred while calling o71.save.\n: java.net.SocketTimeoutException: Read timed out\n\tat x",
    "An error occurred while calling o71.sql.\n: java.io.IOException: Input/output error",
    "An error occurred while calling o71.delete.\n: java.nio.file.FileSystemException: /lake: Stale handle",
    "An error occurred while calling o71.commit.\n: org.apache.hadoop.net.ConnectTimeoutException: 20 s",
]
UNFORESEEN = [
    "An error occurred while calling o71.save.\n: org.apache.spark.SparkException: Job aborted.\n"
    "Caused by: java.io.EOFException: the Python worker ended",
    "An error occurred while calling o71.load.\n: java.net.URISyntaxException: Illegal character in scheme",
    "org.apache.spark.sql.AnalysisException: [UNRESOLVED_COLUMN] whatever",
    "",
]
MOVED = [
    "[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] Some data may have been lost because they are not"
    " available in Kafka any more; caused by org.apache.kafka.common.errors.OffsetOutOfRangeException",
    "java.lang.AssertionError: assertion failed: If startingOffsets contains specific offsets, you must"
    " specify all TopicPartitions.",
]


CHANGED = [
    "io.delta.exceptions.MetadataChangedException: [DELTA_METADATA_CHANGED] MetadataChangedException: The"
    " metadata of the Delta table delta.`file:/lake/silver/shop/orders` has been changed.",
    "[FIELD_ALREADY_EXISTS] Cannot add column, because `priority` already exists in the table.",
    "[DELTA_MERGE_UNRESOLVED_EXPRESSION] Cannot resolve priority in UPDATE clause given columns f.id.",
]


def cause_of(text: str) -> BaseException:
    return translated(RuntimeError(text), table="t", attempt="a", bootstrap="kafka:9092", root="file:///lake")


@pytest.mark.parametrize("text", BROKER)
def test_a_broker_that_is_away_is_worth_another_try(text):
    error = cause_of(text)

    assert isinstance(error, BrokerUnavailableError)
    assert (error.bootstrap, error.exit_code) == ("kafka:9092", ExitCode.RETRY)
    assert "\n" not in error.reason
    assert error.reason in text


@pytest.mark.parametrize("text", MOVED)
def test_what_changed_under_a_drain_is_looked_at_again(text):
    error = cause_of(text)

    assert isinstance(error, KafkaMovedError)
    assert (error.table, error.exit_code) == ("t", ExitCode.RETRY)


@pytest.mark.parametrize("text", CHANGED)
def test_two_merges_that_meet_at_a_new_column_are_no_bug(text):
    error = cause_of(text)

    assert isinstance(error, TableChangedError)
    assert (error.table, error.exit_code) == ("t", ExitCode.RETRY)
    assert error.reason in text


DAMAGED = [
    "org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
    "file:/lake/bronze/shop/orders/a-1.snappy.parquet. SQLSTATE: KD001\n"
    "Caused by: org.apache.parquet.io.ParquetDecodingException: could not verify page integrity, CRC checksum"
    " verification failed",
    "java.lang.RuntimeException: file:/lake/bronze/shop/orders/a-1.snappy.parquet is not a Parquet file."
    " Expected magic number at tail, but found [0, 0, 0, 0]",
]


@pytest.mark.parametrize("text", DAMAGED)
def test_a_file_that_is_not_what_was_written_needs_a_person(text):
    error = cause_of(text)

    assert isinstance(error, FileDamagedError)
    assert error.exit_code is ExitCode.DATA
    assert error.what.endswith("file:/lake/bronze/shop/orders/a-1.snappy.parquet")


@pytest.mark.parametrize("text", OBJECT_STORE)
def test_an_object_store_that_refuses_or_is_away_is_worth_another_try(text):
    error = cause_of(f"An error occurred while calling o1.save.\n: {text}\n\tat somewhere")

    assert isinstance(error, StorageUnavailableError)
    assert error.reason.endswith(text)


@pytest.mark.parametrize("text", DRIVER)
def test_a_store_that_breaks_off_is_worth_another_try_whatever_it_was_asked(text):
    error = cause_of(text)

    assert isinstance(error, StorageUnavailableError)
    assert error.exit_code is ExitCode.RETRY
    assert text.splitlines()[1] == f": {error.reason}"


@pytest.mark.parametrize("text", CONFLICT)
def test_a_lost_race_is_superseded(text):
    error = cause_of(text)

    assert isinstance(error, SupersededError)
    assert (error.table, error.attempt) == ("t", "a")
    assert is_conflict(RuntimeError(text))


@pytest.mark.parametrize("text", STORAGE)
def test_a_full_or_closed_disk_is_worth_another_try(text):
    error = cause_of(text)

    assert isinstance(error, StorageUnavailableError)
    assert (error.root, error.exit_code) == ("file:///lake", ExitCode.RETRY)


@pytest.mark.parametrize("text", UNFORESEEN)
def test_anything_else_stays_what_it_is(text):
    error = cause_of(text)

    assert type(error) is RuntimeError
    assert not is_conflict(error)


def test_an_error_of_ours_is_never_read_again():
    ours = StorageUnavailableError(root="r", reason="Failed to construct kafka consumer")

    assert translated(ours, table="t", attempt="a", bootstrap="b", root="r") is ours


def test_an_error_of_ours_keeps_its_code_and_advice():
    lost = OffsetsLostError(table="t", decision="t=a.b/0:1-2")

    error = as_table_error(lost)

    assert (error.code, error.exit_code) == ("OFFSETS_LOST", ExitCode.DATA)
    assert error.advice == lost.advice


@pytest.mark.parametrize(
    ("exc", "sentence"),
    [
        (KeyError("x"), "KeyError: …"),
        (ValueError("first\nsecond"), "ValueError: first"),
        (ValueError(""), "ValueError"),
        (ValueError("x" * 999), "ValueError: " + "x" * 300),
    ],
)
def test_a_bug_is_told_in_one_short_line(exc, sentence):
    error = as_table_error(exc)

    assert (error.code, error.exit_code, error.sentence) == ("BUG", ExitCode.BUG, sentence)

"""Which lines of spark-submit reach the task's log, and at which level."""

import json
import logging

import pytest

from cdc_lakehouse.orchestration.log_relay import LogRelay


def test_a_line_of_ours_keeps_its_level_and_reads_as_event_and_facts():
    line = json.dumps(
        {"log": "cdc_lakehouse", "level": "ERROR", "logger": "x", "event": "batch lost", "rows": 5}
    )
    assert LogRelay().read(line) == (logging.ERROR, "batch lost rows=5")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("26/01/31 10:00:00 INFO SparkContext: Running", None),
        ("26/01/31 10:00:00 WARN Client: careful", (logging.WARNING, "spark: Client: careful")),
        ("2026-01-31T10:00:00.123Z ERROR Executor: lost", (logging.ERROR, "spark: Executor: lost")),
        ("Spark Command: /usr/bin/java -cp x", None),
        ("========================================", None),
        ("Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties", None),
        ('Setting default log level to "WARN".', None),
        ("WARNING: Using incubator modules: jdk.incubator.vector", None),
        ("", None),
        ("printed by a job", (logging.INFO, "printed by a job")),
        ("100% of {everything} %s", (logging.INFO, "100% of {everything} %s")),
    ],
)
def test_spark_is_heard_from_warning_on_and_its_noise_never(line, expected):
    assert LogRelay().read(line) == expected


def test_a_java_exception_is_one_line_per_cause_without_frames_and_values():
    relay = LogRelay()
    lines = [
        "26/01/31 10:00:00 ERROR Executor: Exception in task 3.0 in stage 1.0 (TID 7)",
        "org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT] The value 'alice@example.com' of"
        ' the type "STRING" cannot be cast to "INT". SQLSTATE: 22018',
        "\tat org.apache.spark.X.y(X.scala:1)",
        "second line of alice@example.com",
        'Caused by: java.lang.NumberFormatException: For input string: "alice@example.com"',
        "\t... 12 more",
        "# A fatal error has been detected by the Java Runtime Environment:",
    ]
    told = [found for line in lines if (found := relay.read(line)) is not None]
    assert told == [
        (logging.ERROR, "spark: Executor: Exception in task 3.0 in stage 1.0 (TID 7)"),
        (logging.ERROR, "org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT]"),
        (logging.ERROR, "Caused by: java.lang.NumberFormatException: For input string: …"),
        (logging.ERROR, "# A fatal error has been detected by the Java Runtime Environment:"),
    ]


def test_an_exception_below_a_line_that_nobody_misses_is_not_told():
    relay = LogRelay()
    relay.read("26/01/31 10:00:00 INFO Executor: found")
    assert relay.read("java.io.IOException: broken pipe") is None


@pytest.mark.parametrize("above", ["INFO", "WARN"])
@pytest.mark.parametrize(
    "last_words",
    [
        'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space',
        "Terminating due to java.lang.OutOfMemoryError: Java heap space",
        "Fatal Python error: Aborted",
        "terminate called without an active exception",
        "Segmentation fault (core dumped)",
        "Killed",
        "# There is insufficient memory for the Java Runtime Environment to continue.",
    ],
)
def test_what_a_dying_process_writes_is_shown_below_any_line_of_spark(above, last_words):
    relay = LogRelay()
    relay.read(f"26/01/31 10:00:00 {above} TaskSetManager: Starting task")
    assert relay.read(last_words) == (logging.ERROR, last_words)


def test_the_cause_of_an_exception_that_ends_the_driver_is_shown_below_it():
    relay = LogRelay()
    relay.read("26/01/31 10:00:00 INFO SparkContext: Running")
    relay.read('Exception in thread "main" org.apache.spark.SparkException: no master')
    assert relay.read("Caused by: java.net.UnknownHostException: master") == (
        logging.ERROR,
        "Caused by: java.net.UnknownHostException: master",
    )


def test_a_value_in_a_line_of_spark_is_withheld():
    line = "26/01/31 10:00:00 WARN TaskSetManager: Lost task: java.lang.RuntimeException: bad 'alice' here"
    assert LogRelay().read(line) == (
        logging.WARNING,
        "spark: TaskSetManager: Lost task: java.lang.RuntimeException: bad …",
    )


def test_a_python_traceback_after_our_lines_is_shown_whole():
    relay = LogRelay()
    relay.read(json.dumps({"log": "cdc_lakehouse", "level": "INFO", "event": "started"}))
    assert relay.read("Traceback (most recent call last):") == (
        logging.INFO,
        "Traceback (most recent call last):",
    )
    assert relay.read('  File "x.py", line 1') == (logging.INFO, '  File "x.py", line 1')

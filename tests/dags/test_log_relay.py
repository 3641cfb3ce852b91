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


def test_a_stack_trace_goes_the_way_of_the_line_above_it():
    relay = LogRelay()
    relay.read("26/01/31 10:00:00 ERROR Executor: lost")
    assert relay.read("\tat org.apache.spark.X.y(X.scala:1)") == (
        logging.ERROR,
        "\tat org.apache.spark.X.y(X.scala:1)",
    )
    relay.read("26/01/31 10:00:00 INFO Executor: found")
    assert relay.read("\tat org.apache.spark.X.y(X.scala:1)") is None


def test_a_python_traceback_after_our_lines_is_shown_whole():
    relay = LogRelay()
    relay.read(json.dumps({"log": "cdc_lakehouse", "level": "INFO", "event": "started"}))
    assert relay.read("Traceback (most recent call last):") == (
        logging.INFO,
        "Traceback (most recent call last):",
    )
    assert relay.read('  File "x.py", line 1') == (logging.INFO, '  File "x.py", line 1')

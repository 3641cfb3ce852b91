"""What Spark writes to the log of a job, by the layout that its own logging makes of our file."""

from __future__ import annotations

from typing import Any

import pytest

from artifacts.spark_files import render_logging

VALUE = "it's alice@example.com"


@pytest.fixture(scope="module")
def jvm(spark) -> Any:
    return spark.sparkContext._jvm


def written(jvm: Any, message: str, thrown: Any = None) -> str:
    """Without the time."""
    settings = jvm.java.util.Properties()
    settings.load(jvm.java.io.StringReader(render_logging()))
    core = jvm.org.apache.logging.log4j.core
    layout = core.layout.PatternLayout.newBuilder()
    layout = layout.withPattern(settings.getProperty("appender.console.layout.pattern")).build()
    event = core.impl.Log4jLogEvent.newBuilder()
    event = event.setLevel(jvm.org.apache.logging.log4j.Level.ERROR).setLoggerName("org.x.Executor")
    event = event.setMessage(jvm.org.apache.logging.log4j.message.SimpleMessage(message)).setThrown(thrown)
    text: str = layout.toSerializable(event.build())
    return text.split(" ", 1)[1]


def test_an_exception_is_one_line_without_frames_and_without_its_value(jvm):
    cause = jvm.java.io.IOException(f"no {VALUE}")
    thrown = jvm.java.lang.RuntimeException(f"[CAST_INVALID_INPUT] The value '{VALUE}\nalice' of", cause)

    told = "ERROR Executor: Exception in task 0.0 java.lang.RuntimeException: [CAST_INVALID_INPUT] The value"
    assert written(jvm, "Exception in task 0.0", thrown) == f"{told} ...\n"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("all is well: 'quoted' 4", "all is well: 'quoted' 4 "),
        (f"Lost task: java.lang.Error: no\n{VALUE}\n\tat x", "Lost task: java.lang.Error: no "),
        (f"Lost task: java.lang.Error: '{VALUE}'", "Lost task: java.lang.Error: ..."),
    ],
)
def test_a_message_is_its_first_line_without_what_an_exception_quotes(message, expected, jvm):
    assert written(jvm, message) == f"ERROR Executor: {expected}\n"


def test_an_error_that_pyspark_raises_is_not_written_beside_our_log(spark, capfd):
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        spark.sql(f'select cast("{VALUE}" as int)').collect()

    assert "alice" not in capfd.readouterr().err

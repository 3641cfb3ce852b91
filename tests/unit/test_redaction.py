"""Texts of other programs reach logs and reports without the values that they quote."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import uuid
from collections.abc import Callable

import pyarrow as pa
import pytest

from cdc_lakehouse.application.failures import as_table_error
from cdc_lakehouse.errors import InvalidPipelineError, UnsupportedTypeError
from cdc_lakehouse.log import parse_line
from cdc_lakehouse.preflight.findings import Finding
from cdc_lakehouse.redaction import (
    log_line_without_values,
    message_without_values,
    printable,
    traceback_without_values,
)

SECRET = "alice@example.com"
NUMBER = 4111111111111111

RAISING: dict[str, Callable[[], object]] = {
    "int": lambda: int(SECRET),
    "float": lambda: float(SECRET),
    "key": lambda: dict[str, int]()[SECRET],
    "codec": lambda: (SECRET + "\ud800").encode(),
    "uuid": lambda: uuid.UUID(SECRET),
    "date": lambda: dt.date.fromisoformat(SECRET),
    "json": lambda: json.loads(SECRET),
    "arrow text": lambda: pa.array([SECRET]).cast(pa.int64()),
    "arrow conversion": lambda: pa.array([SECRET, 1]),
    "arrow number": lambda: pa.array([NUMBER]).cast(pa.int8()),
    "arrow decimal": lambda: pa.array([decimal.Decimal(NUMBER)]).cast(pa.decimal128(5, 2)),
    "arrow float": lambda: pa.array([NUMBER + 0.5], pa.float64()).cast(pa.int64()),
}


def raised_by(name: str) -> Exception:
    try:
        RAISING[name]()
    except Exception as exc:  # noqa: BLE001 - whatever it is
        return exc
    raise AssertionError(name)


@pytest.mark.parametrize("name", list(RAISING))
def test_no_sentence_and_no_traceback_of_a_bug_holds_the_value(name):
    exc = raised_by(name)
    told = f"{as_table_error(exc).sentence}\n{traceback_without_values(exc)}"
    assert type(exc).__name__ in told
    assert SECRET not in told
    assert "41111" not in told


SPARK = [
    "[CAST_INVALID_INPUT] The value 'it's {secret}' of the type \"STRING\" cannot be cast. SQLSTATE: 22018",
    "[NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION] The {number} rounded half up. SQLSTATE: 22003",
    "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK violated by row:\n - a : {secret}\nSQLSTATE: 23001",
    "[CAST_INVALID_INPUT] The value 'a\n{secret}' of the type \"STRING\" cannot be cast",
    "An error occurred while calling o71.save.\n: org.apache.spark.SparkException: Job aborted, '{secret}'\n"
    "\tat org.apache.spark.X.y(X.scala:1)\n{secret}\n  File {secret}\n"
    'Caused by: java.lang.NumberFormatException: For input string: "{secret}"',
    "An exception was thrown from the Python worker.\nTraceback (most recent call last):\n"
    "  File \"a.py\", line 3, in read\n    int(text)\nValueError: invalid literal: '{secret}'",
]


@pytest.mark.parametrize("text", SPARK)
def test_an_error_of_spark_is_told_without_the_value(text):
    exc = RuntimeError(text.format(secret=SECRET, number=NUMBER))
    told = f"{as_table_error(exc).sentence}\n{traceback_without_values(exc)}"
    assert SECRET not in told
    assert str(NUMBER) not in told


def test_an_error_of_spark_about_data_keeps_its_name():
    assert message_without_values(SPARK[0]) == "[CAST_INVALID_INPUT]"


def test_an_error_of_the_jvm_is_told_by_what_was_thrown():
    exc = RuntimeError(SPARK[4])
    assert as_table_error(exc).sentence == "RuntimeError: org.apache.spark.SparkException: Job aborted, …"


def test_a_traceback_keeps_frames_of_all_three_languages_and_every_cause():
    try:
        try:
            raised = raised_by("int")
            raise raised
        except ValueError as cause:
            raise RuntimeError(SPARK[4] + "\n" + SPARK[5]) from cause
    except RuntimeError as exc:
        told = traceback_without_values(exc).splitlines()
    assert "ValueError: invalid literal for int() with base #: …" in told
    assert "The above exception was the direct cause of the following exception:" in told
    assert "\tat org.apache.spark.X.y(X.scala:1)" in told
    assert '  File "a.py", line 3, in read' in told
    assert "Caused by: java.lang.NumberFormatException: For input string: …" in told
    assert any(line.startswith(f'  File "{__file__}", line ') for line in told)


def test_a_message_about_names_keeps_them():
    text = "[UNRESOLVED_COLUMN] A column `o`.`id` cannot be resolved in shop.public.log_2024. SQLSTATE: 42703"
    assert message_without_values(text) == text


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Lost task 0.0 in stage 5.0 (TID 7)", "Lost task 0.0 in stage 5.0 (TID 7)"),
        ("ValueError: no such 'alice' here", "ValueError: no such …"),
        ("Lost: [CAST_INVALID_INPUT] The value 'alice'", "Lost: [CAST_INVALID_INPUT] The value …"),
        ("\x1b]0;owned\x07 done", "\\x1b]0;owned\\x07 done"),
    ],
)
def test_a_log_line_is_told_without_the_value_behind_an_exception(line, expected):
    assert log_line_without_values(line) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("größe €", "größe €"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x1b[31mred\x9b2J", "\\x1b[31mred\\x9b2J"),
        ("a\u202eb\u2028c", "a\\u202eb\\u2028c"),
    ],
)
def test_control_characters_are_spelled_out(text, expected):
    assert printable(text) == expected


HOSTILE = "orders\n26/01/31 10:00:00 ERROR all is lost\x1b[2J\x1b]0;owned\x07"


def test_a_name_with_line_breaks_and_escapes_stays_one_line_of_a_sentence():
    error = UnsupportedTypeError(table="orders", column=HOSTILE, type="\x1b[31mred\x1b[0m")

    sentence = error.as_table_error().sentence

    assert sentence.isprintable()
    assert sentence == (
        "column orders 26/01/31 10:00:00 ERROR all is lost\\x1b[2J\\x1b]0;owned\\x07 of orders has the "
        "type red, which is not supported yet"
    )


def test_problems_of_a_pipeline_file_keep_their_lines():
    error = InvalidPipelineError(
        file="a.yaml", where="", problem="2 problems\n  line 1: x\n  line 2: \x1b[2J"
    )

    assert str(error).splitlines() == ["a.yaml: 2 problems", "  line 1: x", "  line 2: \\x1b[2J"]


def test_a_log_line_of_a_hostile_name_is_one_line():
    text = json.dumps(
        {"log": "cdc_lakehouse", "level": "INFO", "event": "discovered", "table": HOSTILE, "x": "\x9b"}
    )

    _, line = parse_line(text) or (0, "")

    assert line.isprintable()


def test_a_finding_of_a_check_is_one_line_for_its_sentence_and_one_for_its_advice():
    lines = Finding.warning("topic \x1b[2J", "named \x07", "look \x9b").lines()

    assert len(lines) == 2
    assert all(line.isprintable() for line in lines)

"""A job's log lines are JSON that the Airflow side reads back."""

from __future__ import annotations

import io
import json
import logging

import pytest

from cdc_lakehouse import log


@pytest.fixture
def stream():
    """Our lines go to the stream; afterwards the logger is as it was."""
    logger = logging.getLogger("cdc_lakehouse")
    before = (list(logger.handlers), logger.level, logger.propagate)
    target = io.StringIO()
    log.configure(target)
    yield target
    logger.handlers, logger.level, logger.propagate = before


def lines(stream: io.StringIO) -> list[str]:
    return stream.getvalue().splitlines()


def test_a_line_is_one_json_object_with_the_facts_as_keys(stream):
    logging.getLogger("cdc_lakehouse.silver.writing.merge").info(
        "batch merged", extra={"table": "orders", "rows": 3}
    )

    assert [json.loads(line) for line in lines(stream)] == [
        {
            "log": "cdc_lakehouse",
            "level": "INFO",
            "logger": "silver.writing.merge",
            "event": "batch merged",
            "table": "orders",
            "rows": 3,
        }
    ]


def test_bound_facts_are_in_every_line_inside_and_gone_outside(stream):
    logger = logging.getLogger("cdc_lakehouse.bronze")
    with log.bound(pipeline="shop"), log.bound(table="orders"):
        logger.info("inside")
    logger.info("outside")

    inside, outside = (json.loads(line) for line in lines(stream))
    assert (inside["pipeline"], inside["table"]) == ("shop", "orders")
    assert "pipeline" not in outside


def test_configuring_twice_does_not_write_twice(stream):
    log.configure(stream)
    logging.getLogger("cdc_lakehouse.bronze").info("once")

    assert len(lines(stream)) == 1


def test_a_line_is_read_back_at_its_level(stream):
    logging.getLogger("cdc_lakehouse.bronze").warning(
        "lag grows", extra={"table": "orders", "lag": 1.5, "why": "two words", "empty": ""}
    )

    assert log.parse_line(lines(stream)[0]) == (
        logging.WARNING,
        'lag grows table=orders lag=1.5 why="two words" empty=""',
    )


def test_a_sentence_and_its_advice_stand_below_the_event_wrapped(stream):
    advice = "Nothing was written. Start the registry again; the next try reads the same records again."
    logging.getLogger("cdc_lakehouse.bronze").error(
        "table failed",
        extra={"table": "orders", "sentence": "the registry did not answer", "advice": f"{advice} {advice}"},
    )

    _, text = log.parse_line(lines(stream)[0]) or (0, "")
    told = text.splitlines()
    assert told[:2] == ["table failed table=orders", "    the registry did not answer"]
    assert max(map(len, told)) <= 110
    assert " ".join(line.strip() for line in told[2:]) == f"{advice} {advice}"


def test_a_traceback_follows_below_the_event_without_the_value_it_is_about(stream):
    try:
        int("boom")
    except ValueError:
        logging.getLogger("cdc_lakehouse.bronze").exception("job failed")

    level, text = log.parse_line(lines(stream)[0]) or (0, "")
    assert level == logging.ERROR
    assert text.splitlines()[0] == "job failed"
    assert text.splitlines()[-1] == "ValueError: invalid literal for int() with base #: …"


@pytest.mark.parametrize("line", ["", "plain text", '{"log": "other"}', '{"log": "cdc_lakehouse", broken'])
def test_lines_of_others_are_left_alone(line):
    assert log.parse_line(line) is None

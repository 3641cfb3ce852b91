"""The output of spark-submit as log lines: ours at their level, Spark's from WARN on, no noise."""

from __future__ import annotations

import logging
import re

from cdc_lakehouse.log import parse_line
from cdc_lakehouse.redaction import is_thrown, log_line_without_values

_SPARK_LINE = re.compile(
    r"^\d{2,4}[/-]\d\d[/-]\d\d[ T]\d\d:\d\d:\d\d\S* (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) (?P<text>.*)"
)
_SPARK_LEVEL = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
_NOISE = re.compile(
    r"^(?:Spark Command: |={10,}$|Using Spark's default log4j profile|Setting default log level to "
    r"|To adjust logging level use |WARNING: Using incubator modules|Using properties file: |:: )"
)
_PYTHON_TRACEBACK = "Traceback (most recent call last):"


class LogRelay:
    """Turns line after line into (level, text); None for what nobody misses.

    What the JVM says of an exception is told in one line per exception, without its frames and without the
    values that its message may quote. The frames of an unexpected failure are in our own traceback.
    """

    def __init__(self) -> None:
        self._level_above: int | None = None
        """Level of the Spark line that an exception below it belongs to."""

    def read(self, line: str) -> tuple[int, str] | None:
        """What to log for this line."""
        ours = parse_line(line)
        if ours is not None:
            self._level_above = None
            return ours
        spark = _SPARK_LINE.match(line)
        if spark is not None:
            self._level_above = _SPARK_LEVEL[spark[1]]
            return self._if_warning(self._level_above, f"spark: {log_line_without_values(spark['text'])}")
        if self._level_above is not None and line != _PYTHON_TRACEBACK:
            return self._continued(self._level_above, line)
        self._level_above = None
        if not line.strip() or _NOISE.match(line):
            return None
        return logging.INFO, log_line_without_values(line)

    def _continued(self, level: int, line: str) -> tuple[int, str] | None:
        """Part of a message of many lines: any of them may be part of a value. A dying JVM writes `#`."""
        shown = is_thrown(line) or line.startswith("#")
        return self._if_warning(level, log_line_without_values(line)) if shown else None

    @staticmethod
    def _if_warning(level: int, text: str) -> tuple[int, str] | None:
        return (level, text) if level >= logging.WARNING else None
